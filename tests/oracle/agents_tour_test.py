"""What `./dev tour agents` is made of, without its model: the task's rows, the chat template of its calls, and the
intervals of its table."""

import json
import math
import os
import pathlib
import random
import subprocess
import sys

import jinja2
import pytest

ROOT = pathlib.Path(__file__).parents[2]
TOUR, EXAMPLES = ROOT / "apps/demo/agents", ROOT / "docs/examples"


def run(script, *words):
    done = subprocess.run([sys.executable, "-B", TOUR / script, *map(str, words)], check=True, text=True,
                          stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(EXAMPLES)}, timeout=600)
    return done.stdout


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    run("rows.py", folder / "one", 7)
    run("rows.py", folder / "again", 7)
    run("rows.py", folder / "other", 8)
    files = {name: {file.stem: file.read_bytes() for file in (folder / name).iterdir()}
             for name in ("one", "again", "other")}
    assert files["one"] == files["again"] and files["one"] != files["other"]
    return {part: lines(folder / "one" / f"{part}.jsonl") for part in files["one"]}


def summands(question):
    return tuple(sorted(int("".join(c for c in word if c.isdigit())) for word in question.split()
                        if any(c.isdigit() for c in word)))


def test_no_sum_is_known_before_it_is_judged(rows):
    assert {part: len(of) for part, of in rows.items()} == {"sft": 200, "train": 1000, "heldout": 200}
    asked = [row["question"] for part in ("train", "heldout") for row in rows[part]]
    asked += [row["messages"][1]["content"] for row in rows["sft"]]
    sums = [summands(question) for question in asked]
    assert len(set(sums)) == len(sums) == 1400
    assert all(len(one) == 3 and 100 <= one[0] and one[2] <= 999 for one in sums)
    for row in rows["train"] + rows["heldout"]:
        assert row["answer"] == str(sum(summands(row["question"])))
    said = [[m["content"] for m in row["messages"]] for row in rows["sft"]]
    assert all(one[-1] == str(sum(summands(one[1]))) for one in said)
    assert sum(len(one) == 5 for one in said) == 100 and sum(len(one) == 3 for one in said) == 100


def test_a_call_is_written_as_the_dialogues_have_it(rows):
    """The template writes what a client sends back of a call as the text that SFT has taught."""
    tools = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    tools.filters["tojson"] = json.dumps
    template = tools.from_string((TOUR / "chat_template.jinja").read_text())
    taught = next(row["messages"] for row in rows["sft"] if len(row["messages"]) == 5)
    sent = [dict(message) for message in taught]
    call = json.loads(sent[2].pop("content"))
    sent[2]["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
    text = template.render(messages=sent, add_generation_prompt=True)
    assert text == template.render(messages=taught, add_generation_prompt=True)
    plain = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in taught)
    assert text == plain + "<|im_start|>assistant\n"


def test_the_table_pairs_problems(tmp_path):
    draw = random.Random(5)
    rates = {"base": 0.05, "sft": 0.4, "rl": 0.9, "broken": 0.0}
    scores = {name: [float(draw.random() < rate) for _ in range(200)] for name, rate in rates.items()}
    for name, of in scores.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(
            json.dumps({"question": str(i), "calls": [], "score": score}) + "\n" for i, score in enumerate(of)))
    shown = run("table.py", tmp_path)
    table = json.loads((tmp_path / "table.json").read_text())
    for name, of in scores.items():
        for values, found in ((of, table[name]["right"]),
                              ([a - b for a, b in zip(of, scores["sft"])], table[name]["against_sft"])):
            mean = sum(values) / len(values)
            error = 1.96 * math.sqrt(sum((v - mean) ** 2 for v in values)) / len(values)
            assert found[0] == pytest.approx(mean)
            assert found[1:] == pytest.approx([mean - error, mean + error], abs=0.15 * error + 0.005)
            assert f"{mean:.3f} [" in shown
    (tmp_path / "rl.jsonl").write_text(json.dumps({"question": "another", "calls": [], "score": 1.0}) + "\n")
    with pytest.raises(subprocess.CalledProcessError):
        run("table.py", tmp_path)
