"""The campaign's results: a table with one row a run, oldest first, below a summary that is written anew
with each row. A seed that was run again has more than one row; the last one counts."""

from collections import Counter
from pathlib import Path

COLUMNS = ["seed", "program", "configuration", "faults", "struck", "outcome", "lost", "doubled",
           "notes"]
NOT_RUN = "not run"


class Results:
    def __init__(self, file):
        self.file = Path(file)
        self.rows = []
        if self.file.exists():
            lines = [line for line in self.file.read_text().split("\n")
                     if line and not line.startswith("#")]
            self.rows = [dict(zip(COLUMNS, line.split("\t"))) for line in lines[1:]]

    def last(self):
        """The last row of each seed."""
        return list({row["seed"]: row for row in self.rows}.values())

    def failed(self):
        return [int(row["seed"]) for row in self.last() if row["outcome"] not in ("ok", NOT_RUN)]

    def next_seeds(self, count):
        """The first seeds that were never run."""
        known, seeds, seed = {int(row["seed"]) for row in self.rows}, [], 1
        while len(seeds) < count:
            if seed not in known:
                seeds.append(seed)
            seed += 1
        return seeds

    def add(self, row):
        def text(value):
            return "" if value is None else " ".join(str(value).split())

        self.rows.append({name: text(row.get(name)) for name in COLUMNS})
        self.write()

    def write(self):
        lines = [f"# {line}" for line in self.summary()] + ["\t".join(COLUMNS)]
        lines += ["\t".join(row[name] for name in COLUMNS) for row in self.rows]
        self.file.write_text("\n".join(lines) + "\n")

    def summary(self):
        last, failed = self.last(), self.failed()
        lost, doubled = (sum(int(row[name] or 0) for row in last) for name in ("lost", "doubled"))
        hung = sum("hung" in row["outcome"] for row in last)
        good = sum(row["outcome"] == "ok" for row in last)
        lines = [f"{len(self.rows)} runs of {len(last)} seeds. Of the last run of each seed: "
                 f"{good} ok, {len(failed)} failed ({hung} hung), {len(last) - good - len(failed)} not run; "
                 f"{lost} groups, samples or prompts lost, {doubled} doubled."]
        if failed:
            lines.append(f"Failed seeds: {', '.join(map(str, failed))}.")
        struck = Counter(kind.strip() for row in last for kind in row["struck"].split(",") if kind)
        lines.append("Struck: " + ", ".join(f"{kind} {count}" for kind, count in sorted(struck.items()))
                     + ".")
        return lines
