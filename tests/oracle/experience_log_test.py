"""The experience log against readers of other people: records through `cbor2`, checksums through
`google_crc32c`, texts through `tokenizers`. A real run over several processes is killed and goes on,
with its log kept; what the log holds must be what the rollout files, the evaluations and the ledger
show."""

import json
import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import cbor2
import google_crc32c
import numpy as np
import pytest
from tiny_model import make_tiny_model

TROUPE = Path(os.environ["TROUPE_BUILD_DIR"]) / "troupe"
STEPS, GROUPS, SAMPLES = 6, 4, 3
FIRST_EVALUATION = 1 << 63
FINISH = ["eos", "stop", "length", "aborted"]


def rows_of(path):
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def records_of(path):
    data = path.read_bytes()
    while data:
        length, crc = struct.unpack("<II", data[:8])
        record = data[8 : 8 + length]
        assert len(record) == length, path
        assert google_crc32c.value(record) == crc, path
        # A token may be half a character: its text is then no UTF-8, as in the rollout files.
        yield cbor2.loads(record, str_errors="replace")
        data = data[8 + length :]


class Run:
    def __init__(self, folder):
        self.folder = folder / "run"
        self.tokenizer = make_tiny_model(folder / "model")
        data = folder / "data.jsonl"
        data.write_text(
            "".join(json.dumps({"prompt": f"{i} is ", "answer": "a"}) + "\n" for i in range(10))
        )
        command = [
            TROUPE, "train", "ppo", "--actor.model_name_or_path", folder / "model",
            "--data.prompt_dataset", data, "--data.input_key", "prompt", "--data.label_key",
            "answer", "--eval.dataset", data, "--eval.steps", "2", "--eval.n_samples_per_prompt",
            "2", "--reward.rule", "regex", "--reward.rule_pattern", "[A-Za-z]{2}",
            "--rollout.batch_size", GROUPS, "--rollout.n_samples_per_prompt", SAMPLES,
            "--data.prompt_max_len", "32", "--rollout.max_new_tokens", "9", "--train.max_steps", STEPS, "--train.staleness_max",
            "1", "--algo.kl.init_coef", "0.01", "--actor.adam.lr", "1e-3", "--run.path",
            self.folder, "--run.keep_experience", "true", "--cluster.head_wait_s", "0",
        ]  # fmt: skip
        self.command = [str(word) for word in command]
        first = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        metrics = self.folder / "metrics.jsonl"
        while first.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") > 5):
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.wait()
        subprocess.run(self.command, check=True, stdout=subprocess.DEVNULL)
        files = sorted((self.folder / "experience").glob("step_*.log"))
        self.events = {int(path.stem[5:]): list(records_of(path)) for path in files}

    def groups(self, step, wanted):
        """By slot, the last attempt of each group of a step, as the events of its file make it."""
        groups = {}
        for event in self.events[step]:
            if event.get("update") != wanted or event["event"] in ("rewards", "evaluation"):
                continue
            if event["event"] == "issued":
                known = groups.get(event["slot"])
                if known is None or known["issued"]["attempt"] < event["attempt"]:
                    groups[event["slot"]] = {"issued": event}
                continue
            group = groups[event["slot"]]
            assert event["attempt"] == group["issued"]["attempt"]
            group.setdefault(event["event"], event)
        return groups


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(tmp_path_factory.mktemp("log"))


def samples_of(taken):
    """Ids, log-probs and versions of each sample; the columns have room for nothing else."""
    ids = np.frombuffer(taken["ids"], "<i4")
    logprobs = np.frombuffer(taken["logprobs"], "<f4")
    assert len(ids) == len(logprobs) == sum(taken["counts"])
    ends = np.cumsum(taken["counts"])[:-1]
    versions = [
        np.repeat([v for v, _ in runs], [n for _, n in runs]) for runs in taken["versions"]
    ]
    for count, runs in zip(taken["counts"], versions):
        assert len(runs) == count
    return list(zip(np.split(ids, ends), np.split(logprobs, ends), versions))


def test_every_update_is_there(run):
    assert sorted(run.events) == list(range(STEPS + 1))
    assert len(list((run.folder / "rollouts").iterdir())) == STEPS
    scored = [e for events in run.events.values() for e in events if e["event"] == "scored"]
    assert {s for e in scored for s in e["scores"]} == {0, 1}, "else they show nothing"


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_rollouts_are_what_the_log_holds(run, step):
    groups = run.groups(step, step - 1)
    assert sorted(groups) == list(range(GROUPS))
    rows = rows_of(run.folder / "rollouts" / f"step_{step:06d}.jsonl")
    assert [(row["slot"], row["sample"]) for row in rows] == [
        (slot, sample) for slot in range(GROUPS) for sample in range(SAMPLES)
    ]
    for row in rows:
        group, sample = groups[row["slot"]], row["sample"]
        taken, scored, referenced = group["taken"], group["scored"], group["referenced"]
        ids, logprobs, versions = samples_of(taken)[sample]
        assert row["step"] == step
        assert row["attempt"] == taken["attempt"] == 0
        assert row["tokens"] == len(ids) > 0
        text = taken["text"][sample]
        assert row["response"] == text == run.tokenizer.decode([i for i in ids if i != 256])
        assert row["finish_reason"] == FINISH[taken["finish"][sample]]
        assert row["truncated"] == (row["finish_reason"] == "length")
        assert (row["finish_reason"] == "eos") == (ids[-1] == 256)
        assert (row["version_min"], row["version_max"]) == (versions.min(), versions.max())
        assert versions.min() >= group["issued"]["version_min"]
        assert np.isfinite(logprobs).all() and (logprobs < 0).all()
        score = scored["scores"][sample]
        assert row["rewards"] == {"regex": score} and row["reward"] == score
        assert scored["member"] == 0 and row["reward_set"] == group["issued"]["set"] == 0
        assert referenced["counts"] == taken["counts"]
        reference = np.frombuffer(referenced["logprobs"], "<f4")
        assert len(reference) == sum(taken["counts"]) and (reference < 0).all()


def test_the_ledger_has_the_prompts_of_the_log(run):
    lines = (run.folder / "ledger.log").read_text().split("\n")[:-1]
    records = [json.loads(line[line.index("{") :]) for line in lines]
    assert len(records) == STEPS * GROUPS
    for record in records:
        issued = run.groups(record["update"] + 1, record["update"])[record["slot"]]["issued"]
        assert record["position"] == issued["prompt"]
        assert record["replaced"] == issued["replaced"]


@pytest.mark.parametrize("done", [0, 2, 4, 6])
def test_evaluations_are_what_the_log_holds(run, done):
    rows = rows_of(run.folder / "eval" / f"step_{done:06d}.jsonl")
    assert len(rows) == 20
    for row, (greedy, slot) in zip(rows, [(g, s) for g in (1, 0) for s in range(10)]):
        group = run.groups(done, FIRST_EVALUATION + 2 * done + greedy)[slot]
        assert row["mode"] == ("greedy" if greedy else "sampled")
        assert row["prompt_id"] == group["issued"]["prompt"] == slot
        assert row["responses"] == group["taken"]["text"]
        assert row["tokens"] == group["taken"]["counts"]
        assert row["rewards"] == group["scored"]["scores"]
        assert len(row["rewards"]) == (1 if greedy else 2)
        versions = np.concatenate([versions for _, _, versions in samples_of(group["taken"])])
        assert versions.min() == versions.max(), "one version of the weights"


def test_a_flipped_bit_shows(run):
    path = run.folder / "experience" / "step_000001.log"
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    other = run.folder / "damaged.log"
    other.write_bytes(damaged)
    with pytest.raises(AssertionError):
        list(records_of(other))


def test_the_example_of_the_documentation_reads_it(run):
    page = Path(os.environ["TROUPE_SOURCE_DIR"]) / "docs" / "run_folder.md"
    blocks = [block.split("```")[0] for block in page.read_text().split("```python\n")[1:]]
    (code,) = [block for block in blocks if "experience/step_000012.log" in block]
    code = code.replace("experience/step_000012", f"{run.folder}/experience/step_000002")
    seen = []
    exec(code, {"print": seen.append})
    assert seen == run.events[2]
