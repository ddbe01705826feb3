# The rule `math`: whether an answer equals the label as mathematics, by the math-verify package. Its
# own time limits are signals, which sympy swallows and long arithmetic does not hear; so a helper
# process compares, without them, and is killed when it takes too long.
import json
import os
import re
import resource
import select
import signal
import time

WALL_SHARE = 4  # a comparison may last so many times its processor time, where the machine is busy
MEMORY_MAX = 2 << 30


FUNCTIONS = frozenset("sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log exp sqrt min max gcd lcm mod "
                      "lim det dim inf sup".split())


def is_prose(label):
    """Whether a label is words or bare signs, which between dollars would be read as products of letters."""
    if "\\" in label:
        return False
    words = [word for word in re.findall(r"[^\W\d_]{2,}", label) if word.lower() not in FUNCTIONS]
    signs = not any(c.isalnum() or c in "\u221e\u2205" for c in label)
    return signs or len(words) > 1 or any(len(word) > 2 for word in words)


def parsed_label(parse, label):
    """The label's value: math-verify wants LaTeX between dollars."""
    bare = "$" not in label and "\\boxed" not in label and not is_prose(label)
    for text in (f"${label}$", label) if bare else (label,):
        value = parse(text, parsing_timeout=None)
        if value:
            return value
    return []


def said(response):
    """What a response says behind its thinking; nothing while it still thinks."""
    behind = response.rpartition("</think>")[2]
    return "" if "<think>" in behind else behind


def compared(parse, verify, label, response):
    wanted = parsed_label(parse, label)
    if not wanted:
        return "label"
    answer = parse(said(response), parsing_timeout=None)
    if not answer:
        return "unparsed"
    return "right" if verify(wanted, answer, timeout_seconds=None) else "wrong"


def processor_seconds(pid):
    """Of a process so far; None where /proc does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


class Helper:
    """A child that compares one pair after another; another takes its place when it is stuck."""

    def __init__(self, parse, verify, seconds):
        self.parse, self.verify, self.seconds, self.pid = parse, verify, seconds, 0

    def start(self):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ours_in)
            os.close(ours_out)
            self.serve(os.fdopen(theirs_in), os.fdopen(theirs_out, "w", buffering=1))
        os.close(theirs_in)
        os.close(theirs_out)
        self.replies, self.requests = ours_in, os.fdopen(ours_out, "w", buffering=1)

    def serve(self, requests, replies):
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
            for line in requests:
                label, response = json.loads(line)
                try:
                    verdict = compared(self.parse, self.verify, label, response)
                except (Exception, RecursionError, MemoryError):
                    verdict = "unparsed"
                replies.write(verdict + "\n")
            status = 0
        finally:
            os._exit(status)

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.requests.close()
            os.close(self.replies)
        self.pid = 0

    def ask(self, label, response):
        """right, wrong, unparsed, label (which cannot be parsed), or stuck."""
        if not self.pid:
            try:
                self.start()
            except OSError as error:  # the machine is short of something: another worker tries again
                print("the rule math cannot start its helper now:", error, file=sys.stderr)
                os._exit(75)
        began, used = time.monotonic(), processor_seconds(self.pid)
        verdict = b""
        try:
            self.requests.write(json.dumps([label, response]) + "\n")
            while not verdict.endswith(b"\n"):
                if select.select([self.replies], [], [], 0.25)[0]:
                    piece = os.read(self.replies, 64)
                    if not piece:
                        break
                    verdict += piece
                    continue
                waited, now = time.monotonic() - began, processor_seconds(self.pid)
                busy = waited if now is None or used is None else now - used
                if busy > self.seconds or waited > WALL_SHARE * self.seconds:
                    break
        except OSError:
            verdict = b""
        if verdict.endswith(b"\n"):
            return verdict.decode().strip()
        self.end()
        return "stuck"


class Rule(RuleOfTheProgram):
    def __init__(self, settings):
        sys.path.insert(0, settings["packages"])
        import logging
        logging.disable(logging.CRITICAL)  # it warns of every time limit that is left to us
        from math_verify import parse, verify
        compared(parse, verify, "1/2", "$\\frac{1}{2}$")  # loads what it loads late
        self.helper = Helper(parse, verify, settings["seconds"])

    def score(self, request, extras):
        values, unparsed, stuck = [], [], []
        for i, (label, response) in enumerate(zip(request["labels"], request["responses"])):
            verdict = self.helper.ask(label, response) if label.strip() else "label"
            values.append(None if verdict == "label" else 1.0 if verdict == "right" else 0.0)
            if verdict == "label":
                extras.causes[i] = f"the label {label[:80]!r} cannot be read as mathematics"
            unparsed.append(int(verdict in ("unparsed", "stuck")))
            stuck.append(int(verdict == "stuck"))
        extras.add("math_unparsed", unparsed)
        extras.add("math_stuck", stuck)
        return values


