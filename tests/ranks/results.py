"""The table of results: a line for each case and program, written after each case. A case that has a good
line for a program is not run again with it."""

import hashlib
import threading
from pathlib import Path

from leavings import PARTS

KEY = ("method", "kind", "bound", "ranks", "stage", "device", "steps")
COLUMNS = ("program", *KEY, *PARTS, "outcome", "seconds")
OK = "ok"


def programs_of(troupe, cuda):
    """A short hash of the program's files, by the device of the cases that it says something about."""
    digest = hashlib.sha256()
    for path in (troupe, troupe.with_name("libtroupe_learn.so")):
        digest.update(path.read_bytes())
    programs = {"cpu": digest.hexdigest()[:12]}
    if cuda.exists():
        digest.update(cuda.read_bytes())
        programs["cuda"] = digest.hexdigest()[:12]
    return programs


def shortened(outcome, most=300):
    """In one line; of a long one the end, where a program says what went wrong."""
    text = " ".join(outcome.split())
    return text if len(text) <= most else "... " + text[-most:]


class Results:
    def __init__(self, path, programs):
        self.path, self.programs = Path(path), programs
        self.lock = threading.Lock()  # cases end on several threads
        self.rows = {}  # the last of each case and program, in order
        if self.path.exists():
            lines = [line for line in self.path.read_text().split("\n") if line and not line.startswith("#")]
            for line in lines[1:]:
                row = dict(zip(COLUMNS, line.split("\t")))
                self.rows[self.place(row)] = row

    @staticmethod
    def place(row):
        return tuple(row[column] for column in ("program", *KEY))

    def find(self, case):
        """The case's good row of this program, or None."""
        row = self.rows.get(self.place({"program": self.programs[case.device], **case.key()}))
        return row if row and row["outcome"] == OK else None

    def add(self, case, found, outcome, seconds):
        row = {"program": self.programs[case.device], **case.key(), **dict.fromkeys(PARTS, "-"), **found,
               "outcome": shortened(outcome), "seconds": f"{seconds:.1f}"}
        with self.lock:
            self.rows.pop(self.place(row), None)
            self.rows[self.place(row)] = row
            self.write()
        return row

    def write(self):
        lines = [f"# {line}" for line in self.summary()] + ["\t".join(COLUMNS)]
        lines += ["\t".join(row[column] for column in COLUMNS) for row in self.rows.values()]
        part = self.path.with_suffix(".part")
        part.write_text("\n".join(lines) + "\n")
        part.replace(self.path)

    def summary(self):
        """A line for each program in the table."""
        lines = []
        for program in dict.fromkeys(row["program"] for row in self.rows.values()):
            rows = [row for row in self.rows.values() if row["program"] == program]
            bad = sum(row["outcome"] != OK for row in rows)
            lines.append(f"program {program}: {len(rows)} cases, {bad} failed, "
                         f"{sum(float(row['seconds']) for row in rows):.0f} s")
        return lines
