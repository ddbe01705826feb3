"""A run of `troupe train` on the tiny model as the fault campaign sees it: gives the command, finds
its processes, and reads what it leaves behind. Every wait is bounded."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import uuid
from datetime import datetime
from pathlib import Path

TAG = "TROUPE_CAMPAIGN_RUN"  # in the environment of each process of a run


class Company:
    """One `troupe train`; `words` come after the usual ones. `before` stands in front of each command
    (another network), and `environment` is added to that of each process. `place`: the folder where
    they work, for their output and cores."""

    def __init__(self, build, files, run, words=(), before=(), environment=(), place=None,
                 method="ppo"):
        self.method = method
        self.build, self.files, self.run = Path(build), Path(files), Path(run)
        self.place = Path(place or self.run.parent)
        self.out = self.place / (self.run.name + ".out")
        self.words, self.before = list(words), list(before)
        self.tag = uuid.uuid4().hex
        self.environment = {**os.environ, **dict(environment), TAG: self.tag}
        self.away = False  # killed, and the command not yet given again
        self.start()

    def start(self):
        """Gives the command, the first time or again."""
        words = ["train", self.method, *data_words(self.method, self.files),
                 "--actor.model_name_or_path", str(self.files / "model"),
                 "--run.path", str(self.run), *self.words]
        self.process = self.program(words, self.out, self.before)
        self.away = False

    def program(self, words, out, before=()):
        """`troupe WORDS...` in the background, as a process of this run."""
        with open(out, "ab") as log:
            return subprocess.Popen([*before, str(self.build / "troupe"), *words],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    start_new_session=True, env=self.environment,
                                    cwd=self.place)

    def kill_head(self):
        self.away = True
        self.process.kill()
        self.process.wait()

    def over(self):
        return not self.away and self.process.poll() is not None

    def processes(self):
        """Name by pid, of the processes of this run that live now: "head", "attach", names of nodes."""
        found = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit() and (words := command_of(entry, self.tag)):
                found[int(entry)] = name_of(words)
        return found

    def nodes(self):
        """pid by node name."""
        return {name: pid for pid, name in self.processes().items()
                if name not in ("head", "attach", "")}

    def find(self, name, limit_s=5):
        """The pid of a process of this run; None when none comes."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end and not self.over():
            for pid, other in self.processes().items():
                if other == name:
                    return pid
            time.sleep(0.005)
        return None

    def wait(self, limit_s):
        """Exit status; None when the run hangs."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def leftovers(self, limit_s, but_for=()):
        """Names of processes of this run that live on for `limit_s`."""
        end = time.monotonic() + limit_s
        while True:
            left = [name for name in self.processes().values() if name not in but_for]
            if not left or time.monotonic() > end:
                return sorted(left)
            time.sleep(0.05)

    def end(self):
        """Whatever is left goes."""
        for _ in range(50):
            left = self.processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.05)
        self.process.wait()

    def steps(self):
        try:
            return (self.run / "metrics.jsonl").read_bytes().count(b"\n")
        except OSError:
            return 0

    def output(self):
        return self.out.read_text(errors="replace")

    def log(self):
        """(seconds since the epoch, text) of each line of the head's log."""
        lines = []
        try:
            text = (self.run / "troupe.log").read_text(errors="replace")
        except OSError:
            return lines
        for line in text.split("\n"):
            stamp = re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+\+00:00", line)
            if stamp:
                lines.append((datetime.fromisoformat(stamp[0]).timestamp(), line))
        return lines

    def crashed(self):
        """Whether a process ended by a signal that nobody sent it."""
        return any(self.place.glob("core*")) or any(
            "ended by signal" in line and "signal 9" not in line for _, line in self.log())

    def check(self):
        """What the ledger says (fault_tool)."""
        done = subprocess.run([self.build / "bin/fault_tool", "check", self.run],
                              capture_output=True, text=True, timeout=60, check=False)
        return json.loads(done.stdout)

    def steps_of_update(self):
        """Optimiser steps of an update, as the newest checkpoint counts them."""
        folder = max((self.run / "ckpt").glob("step_*"))
        version = json.loads((folder / "policy/trainer_state.json").read_text())["version"]
        steps, rest = divmod(version, int(folder.name[5:]))
        if steps == 0 or rest:
            raise ValueError(f"{folder.name} has {version} optimiser steps: not as many in each update")
        return steps

    def ages(self):
        """The ages of the newest and the oldest token of any rollout, in updates behind the weights it
        trained. Versions of weights count optimiser steps."""
        steps, ages = self.steps_of_update(), []
        for file in sorted((self.run / "rollouts").glob("step_*.jsonl")):
            start = int(file.stem[5:]) - 1
            for row in json_rows(file):
                ages += [start - row["version_min"] // steps, start - row["version_max"] // steps]
        return min(ages), max(ages)


def json_rows(file):
    """The objects of a JSON lines file. Its lines end in "\\n" and nothing else: a text may hold
    U+0085, U+2028 and whatever splitlines() cuts at besides."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


def data_words(method, files):
    """The configuration and the rows of a method."""
    if method == "ppo":
        return [str(files / "tiny.yaml"), "--data.prompt_dataset", str(files / "train.jsonl")]
    rows = str(files / f"{method}.jsonl")
    more = ["--data.prompt_key", "input"] if method == "dpo" else []
    return [str(files / "supervised.yaml"), "--data.dataset", rows, "--eval.dataset", rows, *more]


def write_rows(files):
    """What supervised runs read, beside the model and the prompts that are there."""
    answers, pairs = [], []
    for number in range(50):
        prompt, good = f"{number}+1=", str(number + 1)
        answers.append({"input": prompt, "output": good})
        pairs.append({"input": prompt, "chosen": good, "rejected": "fish"})
    for method, rows in (("sft", answers), ("dpo", pairs)):
        (files / f"{method}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (files / "supervised.yaml").write_text(
        "train: {batch_size: 4, threads: 2, seed: 5, micro_tokens_max: 40}\n"
        "actor: {adam: {lr: 1e-3}}\n"
        "ckpt: {max_num: 2}\n")


def command_of(pid, tag):
    """The words of a living process that has the tag; None for another."""
    folder = Path("/proc", str(pid))
    try:
        if f"{TAG}={tag}".encode() not in (folder / "environ").read_bytes().split(b"\0"):
            return None
        if (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
            return None
        return (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except (OSError, IndexError):
        return None


def name_of(words):
    if "node" in words[1:2] and "--name" in words:
        return words[words.index("--name") + 1]
    return {"train": "head", "attach": "attach"}.get((words + ["", ""])[1], "")
