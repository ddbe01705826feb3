"""Runs that are killed and go on with another number of ranks, and runs that learn again from a log."""

import contextlib
import os
import shutil
import signal
import time
import uuid
from pathlib import Path

from cases import Leg, words_of
from leavings import oldest_age
import record

TAG = "TROUPE_MATRIX_RUN"  # in the environment of each process of a run
ATTEMPTS = 5


class Killer:
    """Starts the legs of a case one after the other and kills all but the last, with all their processes, a
    step behind a checkpoint: so the next one trains that step again."""

    def __init__(self, place):
        self.place = place

    def run(self, case, folder):
        """The folder of the run when it has ended; Failed when no attempt got what is wanted: all kills, and, with
        a bound, samples of older weights."""
        for _ in range(ATTEMPTS):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            if self.attempt(case, folder) and (case.bound == 0 or oldest_age(folder / "run") > 0):
                return folder / "run"
        raise record.Failed("it was always over before it could be killed, or no sample was of older weights")

    def attempt(self, case, folder):
        run, log = folder / "run", folder / "stderr.log"
        kills = [case.steps * (at + 1) // len(case.legs) + 1 for at in range(len(case.legs) - 1)]
        for leg, steps in zip(case.legs, kills):
            if not self.killed_after(words_of(case, leg, str(run)), run, steps, log):
                return False
        said = self.place.run(words_of(case, case.legs[-1], str(run)), log)
        if "going on from" not in said + log.read_text(errors="replace"):
            raise record.Failed("did not go on from the checkpoint")
        return True

    def killed_after(self, words, run, steps, log):
        """Whether the run was under way still when it had recorded so many steps."""
        tag = uuid.uuid4().hex
        with open(log, "ab") as out:
            process = self.place.start(words, out, out, {TAG: tag})
        end = time.monotonic() + record.LIMIT_S
        while steps_of(run) < steps and process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        under_way = process.poll() is None
        process.kill()
        process.wait()
        while left := processes_of(tag):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        if not under_way and process.returncode != 0:
            raise record.Failed(f"status {process.returncode}: {log.read_text(errors='replace')[-2000:]}")
        return under_way


def steps_of(run):
    """Steps that the run has recorded; evaluations have lines of their own."""
    try:
        return sum('"train/' in line or '"policy/' in line
                   for line in (run / "metrics.jsonl").read_text().split("\n"))
    except OSError:
        return 0


def processes_of(tag):
    """pids of the living processes that have the tag."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            if entry.name.isdigit() and f"{TAG}={tag}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                if (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
                    found.append(int(entry.name))
    return found


def learn_again(place, case, run):
    """The folder of a run by one process that learns from a copy of the run's experience log alone."""
    folder = run.parent / "again"
    folder.mkdir()
    shutil.copytree(run / "experience", folder / "run" / "experience")
    said = place.run(words_of(case, Leg(), str(folder / "run")), folder / "stderr.log")
    said += (folder / "run" / "troupe.log").read_text(errors="replace")
    if f"of {case.steps} updates after the checkpoint are in the experience log" not in said:
        raise record.Failed("the experience log is not whole")
    return folder / "run"
