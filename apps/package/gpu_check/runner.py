"""Runs items: each a process group of its own with its own limit, whatever happens to the others."""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import time

NO_SUITE = "(none)"


class Runner:
    def __init__(self, report, launch, minutes, patience=1, jobs=1):
        """`launch(program)`: the words and the environment that start one of our programs. `patience`: by which all
        limits are multiplied. `jobs`: test programs that run at one time."""
        self.report = report
        self.jobs = jobs
        self.patience = patience
        self.launch = launch
        self.end = time.monotonic() + 60 * minutes

    def left(self):
        return self.end - time.monotonic()

    def end_of(self, seconds):
        """When so many seconds from now are over."""
        return time.monotonic() + seconds * self.patience

    def run(self, stage, item, words, limit, environment=None, figures=False):
        """Runs the words and writes the item's lines. Returns its state and what it printed. `figures`: lines of
        JSON that it prints go into its line."""
        if (stage, item) in self.report.done:
            return "passed", ""
        limit = min(limit * self.patience, self.left())
        if limit < 1:
            self.report.add(stage, item, "skipped", why="no time left")
            return "skipped", ""
        self.report.add(stage, item, "started", limit_s=round(limit), words=[str(word) for word in words])
        began = time.monotonic()
        log = self.report.log(f"{stage}_{item}")
        code, why = self._play(words, limit, environment, log)
        text = _read(log)
        state = "timeout" if code is None else "passed" if code == 0 else "failed"
        more = {"seconds": round(time.monotonic() - began, 1), "exit": code, "log": os.path.basename(log)}
        if why:
            more["why"] = why
        elif state != "passed":
            more["why"] = _last_line(text)
        if state == "passed" and "[  SKIPPED ] " in text and "[       OK ] " not in text:
            state, more["why"] = "skipped", "each of its tests was skipped; the log says why"
        if figures:
            more["figures"] = _figures(text)
            if state == "passed" and not more["figures"]:
                state, more["why"] = "failed", "it printed no figures"
        self.report.add(stage, item, state, **more)
        return state, text

    def _play(self, words, limit, environment, log):
        """Exit code (None: it ran out of its time) and what kept it from running."""
        try:
            with open(log, "wb") as out:
                process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=subprocess.STDOUT, start_new_session=True,
                                           env={**os.environ, **(environment or {})})
                try:
                    return process.wait(limit), ""
                except subprocess.TimeoutExpired:
                    return None, f"killed after {limit:.0f} s"
                finally:
                    _kill(process)
        except OSError as error:
            return 127, str(error)

    # ---- test programs

    def suites(self, program, pattern):
        """The suites that a test program has for a pattern, with their tests; why there are none."""
        words, environment = self.launch(program)
        try:
            listed = subprocess.run([*words, "--gtest_list_tests", f"--gtest_filter={pattern}"], text=True,
                                    capture_output=True, timeout=30, check=False, env={**os.environ, **environment})
        except (OSError, subprocess.TimeoutExpired) as error:
            return {}, str(error)
        found = {}
        for line in listed.stdout.splitlines():
            name = line.split("#")[0].rstrip()
            if re.fullmatch(r"\S+\.", name):
                suite = found.setdefault(name[:-1], [])
            elif name.startswith("  "):
                suite.append(name.strip())
        return found, "" if listed.returncode == 0 else _last_line(listed.stdout + listed.stderr)

    def tests(self, stage, program, pattern, limit, one_limit, environment=None):
        """Each suite a process, `jobs` at a time. Where one crashes or hangs, those of its tests that have not run
        are run one by one."""
        found, why = self.suites(program, pattern)
        if not found:
            self.report.add(stage, f"{program}.{NO_SUITE}", "failed", why=why or f"no test fits {pattern}")
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for done in [pool.submit(self._suite, stage, program, suite, tests, limit, one_limit, environment)
                         for suite, tests in found.items()]:
                done.result()

    def _suite(self, stage, program, suite, tests, limit, one_limit, environment):
        chosen = ":".join(f"{suite}.{test}" for test in tests)
        state, text = self._test(stage, program, suite, chosen, limit, environment)
        if state not in ("failed", "timeout"):
            return
        ended = set(re.findall(r"\[ +(?:OK|FAILED|SKIPPED) +\] (\S+?)[ ,(]", text + " "))
        for test in tests:
            if f"{suite}.{test}" not in ended:
                self._test(stage, program, f"{suite}.{test}", f"{suite}.{test}", one_limit, environment)

    def _test(self, stage, program, item, pattern, limit, environment):
        words, own = self.launch(program)
        state, text = self.run(stage, f"{program}.{item}", [*words, f"--gtest_filter={pattern}"], limit,
                               {**own, **(environment or {})})
        return state, text


def _kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as text:
            return text.read()
    except OSError:
        return ""


def _last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    broken = [line for line in lines if "FAILED" in line or line.startswith("error")]
    return (broken or lines or ["it printed nothing"])[-1].strip()[:300]


def _figures(text):
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
    return found
