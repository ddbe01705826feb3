"""The page of `troupe report` against readers of other people: Python's `html.parser` for its
markup, `hashlib` for its policy, `cbor2` and `tokenizers` for tokens and log-probs, numpy for the
advantages (TRL's formula: the deviation with n - 1, plus 1e-4). A real run whose prompts, labels and
folders are markup."""

import base64
import hashlib
import json
import os
import struct
import subprocess
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import cbor2
import numpy as np
import pytest
from tokenizers import Tokenizer

TROUPE = Path(os.environ["TROUPE_BUILD_DIR"]) / "troupe"
STEPS, GROUPS, SAMPLES = 4, 3, 4
EVIL = "</script><script>boo()</script><!--<img src=x onerror=boo()>&lt;\"'\u202e\u2028\u0000"


class Page(HTMLParser):
    """Every element with its attributes, and all text that stands outside of script and style."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.source = path.read_text(encoding="utf-8")
        self.elements, self.texts, self.comments, self.inside = [], [], [], []
        self.scripts, self.styles = [], []
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, attrs))
        self.inside.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self.inside[-1] if self.inside else ""
        if inside == "script":
            self.scripts[-1] += data
        else:
            (self.styles if inside == "style" else self.texts).append(data)

    def handle_comment(self, data):
        self.comments.append(data)

    @property
    def data(self):
        return json.loads(self.scripts[0])


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def events_of(path):
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<I", data[:4])
        yield cbor2.loads(data[8 : 8 + length], str_errors="replace")
        data = data[8 + length :]


def report(*words):
    return subprocess.run([TROUPE, "report", *map(str, words)], check=True, text=True, capture_output=True)


class Run:
    def __init__(self, folder):
        self.folder = folder / "<img src=x onerror=boo()>"
        model = folder / "model"
        subprocess.run([TROUPE, "model", "random", "--shape", "tiny", "--out", model], check=True, stdout=subprocess.DEVNULL)
        self.tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        rows = folder / "data.jsonl"
        rows.write_text("".join(json.dumps({"prompt": f"{i} {EVIL}", "answer": f"{EVIL}{i}"}) + "\n" for i in range(6)))
        command = [
            TROUPE, "train", "ppo", "--actor.model_name_or_path", model,
            "--data.prompt_dataset", rows, "--data.input_key", "prompt", "--data.label_key", "answer",
            "--eval.dataset", rows, "--eval.steps", STEPS, "--eval.n_samples_per_prompt", "2",
            "--reward.rule", "regex", "--reward.rule_pattern", "[A-Za-z]{2}",
            "--rollout.batch_size", GROUPS, "--rollout.n_samples_per_prompt", SAMPLES,
            "--data.prompt_max_len", "200", "--rollout.max_new_tokens", "6", "--train.max_steps", STEPS,
            "--algo.kl.init_coef", "0.01", "--actor.adam.lr", "1e-3", "--run.path", self.folder,
            "--run.keep_experience", "true", "--cluster.transport", "loopback", "--train.threads", "1",
        ]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        nodes = self.folder / "nodes"
        nodes.mkdir(exist_ok=True)
        (nodes / "<script>boo()<b>.log").write_text(EVIL)
        report(self.folder, "--out", folder / "page.html")
        self.page = Page(folder / "page.html")
        (self.data,) = self.page.data["runs"]
        empty = folder / "empty"
        empty.mkdir()
        report(empty, "--out", folder / "empty.html")
        self.bare = Page(folder / "empty.html")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("report"))


def shown(run):
    for group in run.data["rollouts"]["groups"]:
        for sample in group["samples"]:
            yield group, sample


def test_the_page_has_no_element_but_its_own(run):
    assert [tag for tag, _ in run.page.elements] == [
        "html", "head", "meta", "meta", "meta", "meta", "meta", "title", "style", "body", "noscript", "p",
        "div", "script", "script",
    ]  # fmt: skip
    assert run.page.elements == run.bare.elements
    assert run.page.comments == run.bare.comments == []
    assert run.page.texts == run.bare.texts
    assert run.page.scripts[1:] == run.bare.scripts[1:]
    assert all(name not in ("src", "href", "style") and not name.startswith("on")
               for _, attributes in run.page.elements for name, _ in attributes)


def test_what_is_hostile_is_there_as_data_alone(run):
    assert run.data["name"] == run.folder.name
    assert EVIL in run.data["rollouts"]["groups"][0]["p"]
    assert any(log["name"] == "<script>boo()<b>" and log["end"] == EVIL for log in run.data["node_logs"])
    for part in ("boo()<", "<img", "<!--", "\u202e", "\u2028", "\u0000"):
        assert part not in run.page.source


def test_the_policy_names_the_one_script_and_the_one_style(run):
    (policy,) = [dict(attributes)["content"] for tag, attributes in run.page.elements
                 if ("http-equiv", "Content-Security-Policy") in attributes]

    def hash_of(text):
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    data, script = run.page.scripts
    assert policy == (f"default-src 'none'; script-src {hash_of(script)}; "
                      f"style-src {hash_of(''.join(run.page.styles))}; base-uri 'none'; form-action 'none'")
    assert "unsafe" not in policy


def test_every_sample_is_that_of_the_rollout_file(run):
    rows = {(row["step"], row["slot"], row["sample"]): row
            for step in range(1, STEPS + 1)
            for row in rows_of(run.folder / "rollouts" / f"step_{step:06d}.jsonl")}
    assert len(rows) == STEPS * GROUPS * SAMPLES
    seen = set()
    for group, sample in shown(run):
        place = (group["u"], group["s"], sample["i"])
        row = rows[place]
        seen.add(place)
        assert (group["p"], group["l"]) == (row["prompt"], row["label"])
        assert (sample["y"], sample["n"], sample["r"]) == (row["response"], row["tokens"], row["reward"])
        assert sample["parts"] == row["rewards"] and sample["f"] == row["finish_reason"]
        assert (sample["v0"], sample["v1"]) == (row["version_min"], row["version_max"])
    assert seen == set(rows)
    assert {row["reward"] for row in rows.values()} == {0, 1}, "else they show nothing"


def test_tokens_and_log_probs_are_those_of_the_experience_log(run):
    logged = {}
    for step in range(1, STEPS + 1):
        for event in events_of(run.folder / "experience" / f"step_{step:06d}.log"):
            if event["event"] in ("taken", "referenced") and event["update"] == step - 1:
                logged[event["event"], step, event["slot"]] = event
    checked = 0
    for group, sample in shown(run):
        taken, referenced = (logged[kind, group["u"], group["s"]] for kind in ("taken", "referenced"))
        ends = np.cumsum(taken["counts"])[:-1]

        def part(event, key, kind, at=sample["i"]):
            return np.split(np.frombuffer(event[key], kind), ends)[at]

        tokens = sample["tok"]
        ids = part(taken, "ids", "<i4")
        assert len(tokens["t"]) == len(ids) == sample["n"]
        assert "".join(tokens["t"]) == run.tokenizer.decode(list(ids), skip_special_tokens=False)
        np.testing.assert_allclose(tokens["lp"], part(taken, "logprobs", "<f4"), rtol=1e-5)
        np.testing.assert_allclose(tokens["ref"], part(referenced, "logprobs", "<f4"), rtol=1e-5)
        checked += 1
    assert checked == STEPS * GROUPS * SAMPLES


def test_advantages_are_those_of_the_formula(run):
    for group in run.data["rollouts"]["groups"]:
        rewards = np.array([sample["r"] for sample in group["samples"]])
        assert len(rewards) == SAMPLES
        wanted = (rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4)
        np.testing.assert_allclose([sample["adv"] for sample in group["samples"]], wanted, rtol=1e-5, atol=1e-9)


def test_curves_are_the_metrics(run):
    rows = rows_of(run.folder / "metrics.jsonl")
    names = {name for row in rows for name in row} - {"step", "time"}
    assert set(run.data["metrics"]) == names
    for name in names:
        own = [(row["step"], row[name]) for row in rows if name in row]
        curve = run.data["metrics"][name]
        assert curve["x"] == [step for step, _ in own]
        np.testing.assert_allclose(curve["y"], [value for _, value in own], rtol=1e-5, atol=1e-300)


def test_held_out_answers_are_those_of_the_evaluations(run):
    files = [rows_of(run.folder / "eval" / f"step_{step:06d}.jsonl") for step in (0, STEPS)]
    held_out = run.data["held_out"]
    assert (held_out["before"], held_out["after"]) == (0, STEPS)
    assert len(held_out["rows"]) == 12
    for name, rows in zip(("before", "after"), files):
        known = {(row["prompt_id"], row["mode"]): row for row in rows}
        for row in held_out["rows"]:
            file_row = known[row["id"], row["mode"]]
            assert row[name]["y"] == file_row["responses"] and row[name]["r"] == file_row["rewards"]
            assert (row["p"], row["l"]) == (file_row["prompt"], file_row["label"])


def test_a_chart_is_well_formed_xml_with_a_line_a_run(run):
    out = run.folder.parent / "chart.svg"
    report(run.folder, "--svg", "reward/mean", "--out", out)
    root = ElementTree.parse(out).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == space + "svg"
    assert {element.tag for element in root} == {space + name for name in ("rect", "text", "line", "path")}
    (line,) = root.findall(space + "path")
    assert line.get("d").count("L") == STEPS - 1
    assert run.folder.name in [text.text for text in root.findall(space + "text")]
