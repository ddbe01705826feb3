# The rule `code`: the share of a row's tests that a program passes. The programs run confined
# (confinement.py). What the tests expect stays here, as far as they can be taken apart.
import ast
import re


# Runs in the confined interpreter: the program, then expressions of the tests, with their values as
# JSON on what was standard output.
HARNESS = r"""
import sys, os, json
given = json.loads(sys.stdin.readline())
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
dumps, write, flush = json.dumps, out.write, out.flush

def coded(value, depth=0):
    if depth > 40:
        return ["?"]
    if hasattr(value, "tolist") and not isinstance(value, type):
        value = value.tolist()
    kind = type(value)
    if value is None: return ["n"]
    if kind is bool: return ["b", value]
    if isinstance(value, int): return ["i", hex(value)]
    if isinstance(value, float): return ["f", float.hex(float(value))]
    if isinstance(value, complex): return ["c", float.hex(value.real), float.hex(value.imag)]
    if isinstance(value, str): return ["s", str(value)]
    if kind in (bytes, bytearray): return ["y", bytes(value).hex()]
    for known, name in ((list, "l"), (tuple, "t"), (set, "e"), (frozenset, "z")):
        if isinstance(value, known): return [name, [coded(one, depth + 1) for one in value]]
    if isinstance(value, dict):
        return ["d", [[coded(key, depth + 1), coded(one, depth + 1)] for key, one in value.items()]]
    return ["?"]

def say(number, answer):
    write(dumps([given["secret"], number, answer]) + "\n")
    flush()

space = {"__name__": "__main__"}
try:
    exec(compile(given["program"], "program.py", "exec"), space)
    if given["setup"]:
        exec(compile(given["setup"], "setup", "exec"), space)
except BaseException as error:
    os._exit(0)
say(-1, ["b", True])
for number, kind, text in given["tests"]:
    try:
        if kind == "block":
            exec(compile(text, "test", "exec"), space)
            answer = ["b", True]
        else:
            answer = eval(compile(text, "test", "eval"), space)
            answer = ["b", bool(answer)] if kind == "truth" else coded(answer)
    except BaseException as error:
        answer = ["!", type(error).__name__]
    say(number, answer)
os._exit(0)
"""


def decoded(answer):
    kind, rest = answer[0], answer[1:]
    if kind == "n":
        return None
    if kind in ("b", "s"):
        return rest[0]
    if kind == "i":
        return int(rest[0], 16)
    if kind == "f":
        return float.fromhex(rest[0])
    if kind == "c":
        return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
    if kind == "y":
        return bytes.fromhex(rest[0])
    many = {"l": list, "t": tuple, "e": set, "z": frozenset}.get(kind)
    if many:
        return many(decoded(one) for one in rest[0])
    if kind == "d":
        return {decoded(key): decoded(value) for key, value in rest[0]}
    raise ValueError("no value that can be compared")


class Assertion:
    """One test of the label. Where it compares with a literal, only the other side is evaluated by
    the program's interpreter."""

    def __init__(self, text):
        self.kind, self.text, self.wanted = "block", text, True
        body = ast.parse(text).body
        if len(body) != 1 or not isinstance(body[0], ast.Assert):
            return
        test = body[0].test
        self.kind, self.text = "truth", ast.unparse(test)
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
            return
        for asked, known in ((test.left, test.comparators[0]), (test.comparators[0], test.left)):
            try:
                self.wanted = ast.literal_eval(known)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue
            self.kind, self.text = "value", ast.unparse(asked)
            return

    def passed(self, answer):
        try:
            return bool(decoded(answer) == self.wanted)
        except Exception:
            return False


def program_of(response):
    """The last fenced block of a response, or all of it."""
    blocks = re.findall(r"```[^\n`]*\n(.*?)(?:```|\Z)", response, re.DOTALL)
    return blocks[-1] if blocks else response


def same_output(found, wanted):
    def lines(text):  # a line ends at a line feed; str.splitlines takes nine other characters for one
        return [line.rstrip() for line in text.rstrip().split("\n")]
    return lines(found) == lines(wanted)


class Tests:
    """What a label holds: assertions (with a setup), or pairs of input and output."""

    def __init__(self, label):
        try:
            given = json.loads(label)
        except (ValueError, RecursionError):
            raise ValueError("it is not JSON") from None
        self.setup, self.assertions, self.pairs = "", [], []
        if isinstance(given, dict) and "asserts" in given:
            self.setup = given.get("setup", "")
            given = given["asserts"]
        if isinstance(given, list):
            if not all(isinstance(one, str) for one in given) or not isinstance(self.setup, str):
                raise ValueError("its asserts and setup must be texts")
            try:
                self.assertions = [Assertion(one) for one in given]
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                raise ValueError(f"an assert is not Python: {error}") from None
        elif isinstance(given, dict) and "inputs" in given and "outputs" in given:
            both = given["inputs"], given["outputs"]
            if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in both):
                raise ValueError("its inputs and outputs must be lists of texts")
            if len(both[0]) != len(both[1]):
                raise ValueError(f"it has {len(both[0])} inputs and {len(both[1])} outputs")
            self.pairs = list(zip(*both))
        else:
            raise ValueError("it is neither a list of asserts nor an object with `asserts`, or with `inputs` and "
                             "`outputs`")
        if self.count() == 0:
            raise ValueError("it has no test")

    def count(self):
        return len(self.assertions) + len(self.pairs)


class Rule(RuleOfTheProgram):
    def __init__(self, settings):
        self.seconds, self.all = settings["timeout_s"], settings["score"] == "all"
        self.confined = Program(settings["memory_mb"] << 20)
        self.confined.check()

    def score(self, request, extras):
        values, stopped = [], []
        for i, (label, response) in enumerate(zip(request["labels"], request["responses"])):
            try:
                tests = Tests(label)
            except ValueError as error:
                values.append(None)
                stopped.append(0)
                extras.causes[i] = f"the label holds no tests: {error}"
                continue
            self.hows = []
            passed = self.passed(program_of(response), tests)
            share = passed / tests.count()
            values.append(float(passed == tests.count()) if self.all else share)
            stopped.append(int(any(how != "ended" for how in self.hows)))
        extras.add("code_stopped", stopped)
        return values

    def run(self, program, given, until):
        outcome = self.confined.run(program, given, max(until - time.monotonic(), 0.01))
        if outcome.how == "cannot" and outcome.code in PASSING:
            # The machine is short of something: another worker tries again.
            print("the rule code cannot run a program now:", outcome.output.decode(errors="replace"), file=sys.stderr)
            os._exit(75)
        if outcome.how == "cannot":
            raise RuntimeError("a program could not be confined: " + outcome.output.decode(errors="replace"))
        self.hows.append(outcome.how)
        return outcome

    def passed(self, program, tests):
        until = time.monotonic() + self.seconds
        if tests.pairs:
            count = 0
            for given, wanted in tests.pairs:
                if time.monotonic() >= until:
                    break
                outcome = self.run(program, given.encode(errors="surrogatepass"), until)
                ended = outcome.how == "ended" and outcome.status == 0
                count += ended and same_output(outcome.output.decode(errors="replace"), wanted)
            return count
        return self.passed_assertions(program, tests, until)

    def passed_assertions(self, program, tests, until):
        count, next_one = 0, 0
        while next_one < len(tests.assertions) and time.monotonic() < until:
            secret = os.urandom(16).hex()
            left = list(enumerate(tests.assertions))[next_one:]
            given = {"program": program, "setup": tests.setup, "secret": secret,
                     "tests": [[number, one.kind, one.text] for number, one in left]}
            outcome = self.run(HARNESS, json.dumps(given).encode() + b"\n", until)
            answers = self.answers_in(outcome.output, secret)
            if -1 not in answers:
                return count  # the program itself does not run
            while next_one in answers:
                count += tests.assertions[next_one].passed(answers[next_one])
                next_one += 1
            if next_one < len(tests.assertions):
                next_one += 1  # the test that ended the interpreter
        return count

    @staticmethod
    def answers_in(output, secret):
        answers = {}
        for line in output.decode(errors="replace").split("\n"):
            try:
                said, number, answer = json.loads(line)
            except (ValueError, TypeError, RecursionError):
                continue
            if said == secret and isinstance(number, int) and number not in answers:
                answers[number] = answer
        return answers


