"""table.py FOLDER: what score.py found for each model of the tour, as a table and as FOLDER/table.json.

Each rate and each difference, paired by problem, has a 95 % bootstrap interval (percentiles), as in `troupe eval`.
"""
import json
import pathlib
import random
import sys

RESAMPLES = 2000
LINES = (("base", "as it was"), ("sft", "after SFT"), ("rl", "after RL"), ("broken", "after RL, calculator broken"))


def interval(values):
    """The mean, and both ends."""
    draw = random.Random(1)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    return [sum(values) / len(values), means[int(0.025 * (RESAMPLES - 1))], means[int(0.975 * (RESAMPLES - 1))]]


def read(file):
    with open(file, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main(folder):
    found = {name: read(folder / f"{name}.jsonl") for name, _ in LINES}
    questions = [row["question"] for row in found["sft"]]
    assert all([row["question"] for row in rows] == questions for rows in found.values())
    table = {}
    for name, rows in found.items():
        scores = [row["score"] for row in rows]
        before = [row["score"] for row in found["sft"]]
        table[name] = {"right": interval(scores), "against_sft": interval([a - b for a, b in zip(scores, before)]),
                       "calls": sum(len(row["calls"]) for row in rows) / len(rows)}
    (folder / "table.json").write_text(json.dumps(table, indent=1) + "\n")
    print(f"{len(questions)} held-out problems{'':9}{'right':>24}{'against SFT':>28}{'calls':>8}")
    for name, title in LINES:
        right, against, calls = table[name]["right"], table[name]["against_sft"], table[name]["calls"]
        print(f"  {title:<28}{right[0]:9.3f} [{right[1]:.3f}, {right[2]:.3f}]", end="")
        difference = "" if name == "sft" else f"{against[0]:+.3f} [{against[1]:+.3f}, {against[2]:+.3f}]"
        print(f"{difference:>28}{calls:8.2f}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
