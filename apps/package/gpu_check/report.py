"""What a check has found, on disk at once: one JSON line when an item begins and one when it ends."""
import json
import os
import sys
import tarfile
import threading
import time

STATES = ("passed", "failed", "timeout", "absent", "skipped")


class Report:
    """OUT/lines.jsonl, and OUT/logs with what each item printed. A full disk costs lines, not the check."""

    def __init__(self, folder, resume):
        self.folder = folder
        self.lock = threading.Lock()
        self.logs = os.path.join(folder, "logs")
        os.makedirs(self.logs, exist_ok=True)
        self.path = os.path.join(folder, "lines.jsonl")
        self.done = self._passed() if resume else set()
        if not resume and os.path.exists(self.path):
            os.remove(self.path)
        self.counts = dict.fromkeys(STATES, 0)

    def _passed(self):
        """The items that an earlier check has passed."""
        passed = set()
        if not os.path.isfile(self.path):
            return passed
        try:
            with open(self.path, encoding="utf-8") as lines:
                for line in lines:
                    try:
                        entry = json.loads(line)
                    except ValueError:
                        continue  # cut off in the middle
                    if entry.get("state") == "passed":
                        passed.add((entry.get("stage"), entry.get("item")))
        except OSError:
            pass
        return passed

    def add(self, stage, item, state, **more):
        with self.lock:
            self._add(stage, item, state, more)

    def _add(self, stage, item, state, more):
        if state in self.counts:
            self.counts[state] += 1
        line = json.dumps({"stage": stage, "item": item, "state": state, "time": round(time.time(), 1), **more})
        try:
            with open(self.path, "a", encoding="utf-8") as lines:
                lines.write(line + "\n")
                lines.flush()
                os.fsync(lines.fileno())
        except OSError as error:
            print(f"gpu-check: not written: {error}: {line}", file=sys.stderr, flush=True)
        if state != "started":
            print(f"gpu-check: {stage} {item}: {state} {more.get('why', '')}".rstrip(), file=sys.stderr, flush=True)

    def log(self, item):
        """The file for what an item prints."""
        name = "".join(c if c.isalnum() or c in "._-" else "_" for c in item)
        return os.path.join(self.logs, name + ".log")

    def pack(self):
        """All logs in one archive, for machines that give few files back."""
        try:
            with tarfile.open(os.path.join(self.folder, "logs.tar.gz"), "w:gz") as archive:
                archive.add(self.logs, "logs")
        except OSError as error:
            print(f"gpu-check: the logs are not packed: {error}", file=sys.stderr)
