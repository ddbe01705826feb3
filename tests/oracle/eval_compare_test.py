"""`troupe eval --compare` against numpy, on the pairs that the program itself wrote down: win rate,
standard error, correlations of margin and length, and that the exchanged order agrees to the digit."""

import json
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

TROUPE = Path(os.environ["TROUPE_BUILD_DIR"]) / "troupe"
REWARD = """
def reward_func(queries, prompts, labels):
    return [float(sum(q.encode()) % 7) / 4 for q in queries]
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    (folder / "reward.py").write_text(REWARD)
    draw = random.Random(3)
    for side in "ab":
        rows = [
            {"prompt": f"p{i}", "response": "é" * draw.randrange(1, 9) + str(draw.randrange(99)),
             "datasource": "even" if i % 2 == 0 else "odd"}
            for i in range(57)
        ]  # fmt: skip
        (folder / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(one, other):
        out = folder / f"{one}{other}.out.jsonl"
        command = [
            TROUPE, "eval", "--compare", folder / f"{one}.jsonl", folder / f"{other}.jsonl",
            "--python", folder / "reward.py", "--out", out, "--json",
        ]  # fmt: skip
        done = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=True)
        return json.loads(done.stdout), [json.loads(line) for line in out.read_text().splitlines()]

    return run("a", "b"), run("b", "a")


def ranks(values):
    """Equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((2 * last - counts + 1) / 2)[inverse]


@pytest.mark.parametrize("chosen", [None, "even", "odd"])
def test_figures(compared, chosen):
    (figures, pairs), _ = compared
    figures = figures if chosen is None else figures["sets"][chosen]
    pairs = [p for p in pairs if chosen in (None, p["datasource"])]
    a, b = (np.array([p[f"score_{s}"] for p in pairs]) for s in "ab")
    lengths_a, lengths_b = (np.array([len(p[f"response_{s}"]) for p in pairs]) for s in "ab")
    outcomes = np.where(a > b, 1.0, np.where(a < b, 0.0, 0.5))
    assert 0 < outcomes.mean() < 1 and (outcomes == 0.5).any(), "a test without each says nothing"
    assert figures["pairs"] == len(pairs)
    assert figures["win_rate"] == pytest.approx(outcomes.mean(), abs=1e-15)
    assert figures["se"] == pytest.approx(outcomes.std(ddof=1) / np.sqrt(len(pairs)), abs=1e-15)
    assert figures["length_a"] == pytest.approx(lengths_a.mean(), abs=1e-12)
    margin, longer = a - b, lengths_a - lengths_b
    assert figures["length_pearson"] == pytest.approx(np.corrcoef(margin, longer)[0, 1], abs=1e-12)
    wanted = np.corrcoef(ranks(margin), ranks(longer))[0, 1]
    assert figures["length_spearman"] == pytest.approx(wanted, abs=1e-12)
    decided = (margin != 0) & (longer != 0)
    assert figures["longer_wins"] == pytest.approx(
        ((margin > 0) == (longer > 0))[decided].mean(), abs=1e-15)  # fmt: skip


def test_the_exchanged_order_agrees_to_the_digit(compared):
    (one, _), (other, _) = compared
    assert other["win_rate"] == 1 - one["win_rate"]
    assert one["win_rate"] == 1 - other["win_rate"]
    assert other["se"] == one["se"]
    assert other["wins"] == one["losses"]
    digits = [round(10_000 * float(f"{side['win_rate']:.4f}")) for side in (one, other)]
    assert sum(digits) == 10_000
