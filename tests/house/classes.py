"""Measures the classes of the product: private functions, members, sources and lines of each.

    classes.py [ROOT]           a table of all with more than half of what is allowed
    classes.py --check [ROOT]   exit 1 for a class beyond the rule that is not in classes.txt, and for
                                a row of classes.txt that is not needed any more

The rule: at most 12 private functions and 20 members (structs of settings apart, which have no
functions), one source, no more than 350 lines in header and source together, no `friend` of another
class."""

import pathlib
import re
import sys

PRIVATE_MAX, MEMBERS_MAX, LINES_MAX = 12, 20, 350
ROOMS = ("runtime", "actors", "apps", "kernels")


def bare(text):
    """Without comments, texts and preprocessor lines."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"^\s*#[^\n]*", "", text, flags=re.M)


def body_at(text, brace):
    depth = 0
    for at in range(brace, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[brace + 1:at]
    return text[brace + 1:]


def flat(body):
    """The declarations of a class body: what nested braces hold is left out."""
    out, depth = [], 0
    for letter in body:
        if letter == "}":
            depth -= 1
            if depth == 0:
                out.append("{}")
                continue
        if depth == 0 and letter != "{":
            out.append(letter)
        if letter == "{":
            depth += 1
    return "".join(out)


def declarations(body):
    text = re.sub(r"\{\}(?!\s*[;,)])", "{};", flat(body))  # a function's body ends a declaration
    return [" ".join(part.split()) for part in text.split(";") if part.strip()]


def is_function(declaration):
    if declaration.startswith(("using ", "friend ", "static_assert", "struct ", "class ", "enum ", "typedef ")):
        return False
    head = re.split(r"=(?!=)|\{", re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", declaration)))[0]
    return "(" in head and not re.search(r"\(\s*\*", head)


def is_member(declaration):
    if declaration.startswith(("using ", "friend ", "static_assert", "struct ", "class ", "enum ", "typedef ",
                               "static constexpr", "static const", "template")):
        return False
    return not is_function(declaration) and re.search(r"\w_?(\s*(=|\{|,|\[|$))", declaration) is not None


class Measured:
    def __init__(self, name, header, body):
        self.name, self.header = name, header
        self.private = self.members = 0
        self.friends = 0
        access = "private"
        for part in re.split(r"(public:|protected:|private:)", body):
            if part in ("public:", "protected:", "private:"):
                access = part[:-1]
                continue
            for declaration in declarations(part):
                if declaration.startswith("friend class"):
                    self.friends += 1
                if is_function(declaration):
                    self.private += access == "private"
                elif is_member(declaration):
                    self.members += 1 + flat(declaration).count(",") * (not re.search(r"[<(]", declaration))
        self.sources, self.lines = set(), 0


def measure(root):
    classes, texts = {}, {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.[ch]pp")):
            texts[path.relative_to(root)] = path.read_text()
    for path, text in texts.items():
        if path.suffix != ".hpp":
            continue
        code = bare(text)
        for found in re.finditer(r"^class (\w+)[^;{}()]*\{", code, re.M):
            body = body_at(code, found.end() - 1)
            one = Measured(found[1], path, body)
            one.lines = body.count("\n")
            classes[(path.parent, found[1])] = one
    for path, text in texts.items():
        if path.suffix != ".cpp":
            continue
        code = bare(text)
        for (folder, name), one in classes.items():
            if folder != path.parent:
                continue
            # From a function's head to the brace that ends it at the line's beginning.
            bodies = re.findall(rf"^[^\s#}}/][^;{{}}]*?\b{name}::(?:~?\w+|operator[^(]*)\([^;]*?\{{.*?^\}}", code, re.M | re.S)
            if bodies:
                one.sources.add(path.name)
                one.lines += sum(body.count("\n") + 1 for body in bodies)
    return sorted(classes.values(), key=lambda one: -one.lines)


def faults(one):
    found = []
    if one.private > PRIVATE_MAX:
        found.append(f"{one.private} private functions")
    if one.members > MEMBERS_MAX:
        found.append(f"{one.members} members")
    if len(one.sources) > 1:
        found.append(f"{len(one.sources)} sources")
    if one.lines > LINES_MAX:
        found.append(f"{one.lines} lines")
    return found


def main(words):
    check = "--check" in words
    words = [word for word in words if word != "--check"]
    root = pathlib.Path(words[0] if words else pathlib.Path(__file__).parents[2])
    classes = measure(root)
    if not check:
        print("class private members sources lines")
        for one in classes:
            if one.private > PRIVATE_MAX // 2 or one.lines > LINES_MAX // 2 or len(one.sources) > 1:
                print(one.name, one.private, one.members, len(one.sources), one.lines, one.header)
        return 0
    allowed = set()
    for line in (pathlib.Path(__file__).parent / "classes.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            allowed.add(line.split()[0])
    wrong = {one.name: faults(one) for one in classes if faults(one)}
    for name in sorted(set(wrong) - allowed):
        print(f"{name}: {', '.join(wrong[name])}: divide it into classes with one idea each")
    for name in sorted(allowed - set(wrong)):
        print(f"{name} keeps the rule now: take it out of tests/house/classes.txt")
    return 1 if set(wrong) ^ allowed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
