"""Draws comments, messages and help lines of the product, for a reader who judges their English.

    words_sample.py [--seed N] [ROOT]   60 comments, 40 messages, 20 help lines, each with file:line

The same tree and seed give the same draw. A comment is a whole block of // lines, at least four words
long. A message is what is said in fail(...), Error{...}, note(...), say(...) or warn(...), with {} for
what is filled in. A help line is of a row of keys (*_keys.def, keys.def) or of a list of flags."""

import argparse
import pathlib
import random
import re

ROOMS = ("runtime", "actors", "apps", "kernels")
TEXT = r'"(?:\\.|[^"\\\n])*"'
CALL = re.compile(r"\b(?:fail|note|say|warn)\(|\bError\{")
ROW = re.compile(r"\b(?:FILL|KEY|ALSO|TOP_KEY)\(")
FLAG = re.compile(r'\{\s*"--?[a-z][^"]*",\s*&?[\w.>-]+,\s*(' + TEXT + r"(?:\s*" + TEXT + ")*)")


def long_enough(words):
    return len(re.findall(r"[A-Za-z]{2,}", words)) >= 4


def arguments(text, at):
    """What lies between the bracket before `at` and its partner; brackets within texts do not count."""
    depth, end = 1, at
    for found in re.compile(TEXT + r"|[(){}]").finditer(text, at):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(found[0], 0)
        end = found.start()
        if depth == 0:
            break
    return text[at:end]


def said(code):
    """The texts of an expression, joined, with {} for what is computed between them."""
    parts, end = [], 0
    for found in re.finditer(TEXT, code):
        between = code[end:found.start()].strip()
        parts += ["{}" if parts and between and "," not in between else " | " if parts and between else ""]
        parts.append(found[0][1:-1])
        end = found.end()
    return "".join(parts)


def comments(text):
    for found in re.finditer(r"(?:^[ \t]*//(?! namespace).*\n)+|(?<=\S)[ \t]+//(?! namespace).*\n", text, re.M):
        words = " ".join(line.strip().lstrip("/").strip() for line in found[0].splitlines())
        if long_enough(words) and not re.search(r"Copyright|SPDX|NOLINT|clang-format", words):
            yield found.start(), words


def collect(root):
    kinds = {"comment": [], "message": [], "help": []}
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*")):
        if path.suffix not in (".hpp", ".cpp", ".cu", ".cuh", ".def"):
            continue
        text = path.read_text()
        found = []
        if path.suffix != ".def":
            found += [("comment", at, words) for at, words in comments(text)]
            # A comment would only disturb the search for brackets: blanks keep the places.
            text = re.sub(r"(?m)^([ \t]*)//.*$", lambda one: " " * len(one[0]), text)
            calls = [(call.start(), said(arguments(text, call.end()))) for call in CALL.finditer(text)]
            found += [("message", at, words) for at, words in calls if long_enough(words)]
            found += [("help", one.start(), said(one[1])) for one in FLAG.finditer(text)]
        elif path.name.endswith("keys.def"):
            for row in ROW.finditer(text):
                words = said(arguments(text, row.end()).split(", .")[0])
                found.append(("help", row.start(), words))
        for kind, at, words in found:
            kinds[kind].append((f"{path.relative_to(root)}:{text[:at].count(chr(10)) + 1}", words))
    return kinds


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("root", nargs="?", default=pathlib.Path(__file__).parents[2], type=pathlib.Path)
    chosen = options.parse_args()
    draw = random.Random(chosen.seed)
    for (kind, all_of_it), count in zip(collect(chosen.root).items(), (60, 40, 20)):
        print(f"== {kind}: {count} of {len(all_of_it)}")
        for place, words in sorted(draw.sample(all_of_it, count)):
            print(f"{place}: {words}")


if __name__ == "__main__":
    main()
