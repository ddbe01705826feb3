"""Runs that learn from environments of the package verifiers, unedited, through docs/examples/verifiers_agent.py. One
asks once and runs confined; one has a tool and a user who goes on, and its own client renders (the package renderers)
and draws by POST /inference/v1/generate: the ids and log-probs that it got, bit for bit, are what the run has learned
from. Rewards are those that verifiers gave.
"""

import json
import pathlib
import shlex
import shutil
import subprocess
import sys

import pytest

from byte_model import END
from served import BUILD, HERE, made_by
from taught_model import ENDING

PYTHON = str(pathlib.Path(sys.prefix).resolve() / "bin/python")  # a confined program sees no links
FILES = [HERE.parents[1] / "docs/examples/verifiers_agent.py", HERE / "verifiers_tasks.py", HERE / "verifiers_talk.py"]
# The call that the model is taught, as verifiers names the tool and its template writes it.
ARGUMENT = {"title": "A", "type": "integer"}
ADD = [{"type": "function", "function": {"name": "adder_add", "description": "adds", "parameters": {
    "type": "object", "properties": {"a": ARGUMENT, "b": {**ARGUMENT, "title": "B"}}, "required": ["a", "b"],
    "title": "addArguments"}}}]
CALL = '<tool_call>{"name": "adder_add", "arguments": {"a": 1, "b": 2}}</tool_call>'
WHOLE = ["<tool_call>", "</tool_call>"]
UPDATES, PROMPTS, EPISODES = 2, 2, 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("verifiers") / "tiny"
    made_by("taught_model.py", path, *map(json.dumps, ([{"role": "user", "content": "1+2?"}], ADD, CALL, WHOLE)))
    (path / "chat_template.jinja").write_text(ENDING)
    return path


def said(path, *words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=path, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def learn(folder, path, settings, *more):
    """The turns of each episode that a run has learned from, and the episodes' rewards."""
    for file in FILES:
        shutil.copy(file, path)
    agent = [PYTHON, "verifiers_agent.py", "verifiers_tasks", json.dumps(settings)]
    (path / "rows.jsonl").write_text(said(path, *agent, "--rows", 8))
    said(path, BUILD / "troupe", "train", "ppo", "--actor.model_name_or_path", folder, "--data.prompt_dataset",
         "rows.jsonl", "--data.prompt_max_len", 512, "--env.command", shlex.join(agent), "--rollout.batch_size",
         PROMPTS, "--rollout.n_samples_per_prompt", EPISODES, "--rollout.max_new_tokens", 60, "--train.max_steps",
         UPDATES, "--algo.advantage.estimator", "group_norm", "--run.path", "run", "--run.keep_experience", "true",
         *more)
    traces = [json.loads(line)["turns"] for line in said(path, BUILD / "troupe", "trace", "run").splitlines()]
    lines = [line for file in (path / "run/rollouts").iterdir() for line in file.read_text().splitlines()]
    rewards = {(one["step"], one["slot"], one["episode"]): one["reward"] for one in map(json.loads, lines)}
    assert len(traces) == len(rewards) == UPDATES * PROMPTS * EPISODES
    return traces, list(rewards.values())


def text_of(ids):
    """As the tokenizer decodes an answer."""
    parts = [WHOLE[one - END - 1].encode() if one > END else bytes([one]) for one in ids if one != END]
    return b"".join(parts).decode(errors="replace")


def test_an_environment_of_one_turn_runs_confined(folder, tmp_path):
    traces, rewards = learn(folder, tmp_path, {})
    for turn, in traces:
        assert text_of(turn["prompt_token_ids"]) == "user: 1+2?assistant: "
    assert sorted(rewards) == sorted(len(text_of(turn["completion_token_ids"])) / 4 for turn, in traces)
    assert len(set(rewards)) > 1


def given(node, nodes):
    """A call: its prompt, what was drawn, the log-probs."""
    path, at = [], node["parent"]
    while at is not None:
        path, at = nodes[at]["ids"] + path, nodes[at]["parent"]
    first = node["drawn"].index(True)
    assert all(node["drawn"][first:])
    return [path + node["ids"][:first], node["ids"][first:], node["logprobs"]]


def test_what_verifiers_got_is_what_is_learned_from(folder, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    client = {"type": "train", "renderer_model_name": str(folder),
              "renderer": {"name": "default", "tool_parser": "qwen3"}}
    settings = {"id": "verifiers_talk", "log": str(log), "taskset": {"task": {"tool": True}},
                "speaker": {"client": client, "sampling": {"max_tokens": 60}}}
    traces, rewards = learn(folder, tmp_path, settings, "--env.confined", "false")
    episodes = [json.loads(file.read_text()) for file in log.iterdir()]
    calls = [given(node, one["nodes"]) for one in episodes for node in one["nodes"] if any(node["drawn"])]
    learned = [[turn["prompt_token_ids"], turn["completion_token_ids"], turn["per_token_logps"]]
               for turns in traces for turn in turns]
    assert sorted(map(json.dumps, learned)) == sorted(map(json.dumps, calls))
    for nodes in (one["nodes"] for one in episodes):
        roles = [node["role"] for node in nodes]
        assert roles[:3] == ["user", "assistant", "tool"] and roles.count("user") == 2
    assert all(len(turns) >= 3 for turns in traces)
    assert sorted(rewards) == sorted(one["reward"] for one in episodes)
    for one in episodes:
        right, length = one["rewards"]["right"], one["rewards"]["length"]
        assert right >= 1 and one["reward"] == right + length / 4
