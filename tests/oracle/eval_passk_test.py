"""`troupe eval` against the estimator as its paper publishes it: Chen et al. 2021 ("Evaluating Large
Language Models Trained on Code", human-eval's `estimate_pass_at_k`, restated here), maj@k against a
count by hand, on the samples that the program itself wrote down. What is compared is the arithmetic
from samples to figures, not the sampling."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tiny_model import make_tiny_model

TROUPE = Path(os.environ["TROUPE_BUILD_DIR"]) / "troupe"
SAMPLES = 12


def estimate_pass_at_k(n, c, k):
    """1 - comb(n - c, k) / comb(n, k), in human-eval's stable form."""
    if n - c < k:
        return 1.0
    return 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eval")
    make_tiny_model(folder / "model")
    data = folder / "data.jsonl"
    data.write_text(
        "".join(
            json.dumps({"prompt": f"{i} is ", "datasource": "even" if i % 2 == 0 else "odd"}) + "\n"
            for i in range(30)
        )
    )
    command = [
        TROUPE, "eval", "--model", folder / "model", "--data", data, "--rule", "regex", "--pattern",
        "([0-9A-Za-z])", "--n", str(SAMPLES), "--k", "1,2,4,12", "--max-new-tokens", "3",
        "--temperature", "0.7", "--out", folder / "samples.jsonl", "--json",
    ]  # fmt: skip
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().split("\n") if line]
    assert len(rows) == 30 * SAMPLES
    return json.loads(done.stdout), [rows[i : i + SAMPLES] for i in range(0, len(rows), SAMPLES)]


def figure(outcome, name, chosen):
    figures = outcome["all"] if chosen is None else outcome["sets"][chosen]
    return figures[name]["mean"]


@pytest.mark.parametrize("chosen", [None, "even", "odd"])
@pytest.mark.parametrize("k", [1, 2, 4, 12])
def test_pass_at_k(outcome, k, chosen):
    figures, problems = outcome
    problems = [p for p in problems if chosen in (None, p[0]["datasource"])]
    right = [sum(row["reward"] >= 0.5 for row in problem) for problem in problems]
    assert 0 < sum(right) < len(right) * SAMPLES, "a test without failures or successes says nothing"
    wanted = np.mean([estimate_pass_at_k(SAMPLES, c, k) for c in right])
    assert figure(figures, f"pass@{k}", chosen) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("k", [2, 4, 12])
def test_majority_at_k(outcome, k):
    figures, problems = outcome
    wanted = []
    for problem in problems:
        for begin in range(0, SAMPLES - k + 1, k):
            block = problem[begin : begin + k]
            votes = Counter(row["answer_given"] for row in block)
            winners = [a for a, count in votes.items() if count == max(votes.values())]
            passed = {row["answer_given"]: float(row["reward"] >= 0.5) for row in block}
            wanted.append(np.mean([passed[a] if a else 0.0 for a in winners]))
    assert figure(figures, f"maj@{k}", None) == pytest.approx(np.mean(wanted), abs=1e-12)
