"""A run of `troupe train ppo` on the tiny model as the fault campaign sees it: starts it in a
process group of its own, finds its node processes, and reads what it left behind. Every wait is bounded."""

import hashlib
import json
import os
import re
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path


class Company:
    """One `troupe train`; `words` come after the usual ones."""

    def __init__(self, build, files, run, words=()):
        self.build, self.files, self.run = Path(build), Path(files), Path(run)
        self.out = self.run.with_suffix(".out")
        command = [str(self.build / "troupe"), "train", "ppo", str(self.files / "tiny.yaml"),
                   "--actor.model_name_or_path", str(self.files / "model"),
                   "--data.prompt_dataset", str(self.files / "train.jsonl"),
                   "--run.path", str(self.run), *words]
        with open(self.out, "ab") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, start_new_session=True)
        self.seen = {}

    def nodes(self):
        """pid by node name, of the processes that live now."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                fields = Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[1]) != self.process.pid or fields[0] == "Z":
                    continue
                words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
                found[words[words.index(b"--name") + 1].decode()] = int(entry)
            except (OSError, ValueError, IndexError):
                continue
        self.seen.update({pid: name for name, pid in found.items()})
        return found

    def wait(self, limit_s):
        """Exit status; None when the run hangs: it is killed then."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def leftovers(self, limit_s=2.0):
        """Node processes that outlive the head by more than `limit_s`; they are killed."""
        end = time.monotonic() + limit_s
        while True:
            left = [pid for pid in self.seen if is_node(pid)]
            if not left or time.monotonic() > end:
                break
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left

    def end(self):
        """Whatever is left goes."""
        self.nodes()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.seen:
            if is_node(pid):
                os.kill(pid, signal.SIGKILL)

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

    def check(self):
        done = subprocess.run([self.build / "bin/fault_tool", "check", self.run],
                              capture_output=True, text=True, timeout=60, check=False)
        return json.loads(done.stdout)

    def ages(self):
        """The oldest token of any rollout, in versions behind the weights it trained."""
        oldest = 0
        for file in sorted((self.run / "rollouts").glob("step_*.jsonl")):
            step = int(file.stem[5:])
            for row in json_rows(file):
                oldest = max(oldest, step - 1 - row["version_min"])
        return oldest

    def bits(self, step):
        """What a repetition must give again: weights, sampled ids, metrics."""
        weights = {}
        folder = self.run / "ckpt" / f"step_{step:06d}"
        for file in sorted(folder.rglob("*.safetensors")):
            weights[str(file.relative_to(folder))] = hashlib.sha256(file.read_bytes()).hexdigest()
        rollouts = {file.name: hashlib.sha256(file.read_bytes()).hexdigest()
                    for file in sorted((self.run / "rollouts").glob("step_*.jsonl"))}
        metrics = {}
        for row in json_rows(self.run / "metrics.jsonl"):
            metrics[row["step"]] = {name: value for name, value in row.items()
                                    if name != "time" and not name.startswith(("time/", "perf/"))}
        return {"weights": weights, "rollouts": rollouts, "metrics": metrics}


def json_rows(file):
    """The objects of a JSON lines file. Its lines end in "\\n" and nothing else: a text may hold
    U+0085, U+2028 and whatever splitlines() cuts at besides."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]


def is_node(pid):
    try:
        words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
        state = Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0]
        return b"node" in words and b"--local" in words and state != "Z"
    except (OSError, IndexError):
        return False
