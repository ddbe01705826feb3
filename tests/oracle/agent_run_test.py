"""A run that learns from an agent: what the agent's stock `openai` client was given, token for token and bit for bit,
is what the run has learned from (`troupe trace`), with the reward that the agent gave; and a server of the first
weights, which knows nothing of the run, gives every token of the first update the same log-prob.
"""

import json
import pathlib
import subprocess
import sys

import httpx
from openenv.core.harness.training import TrainingTrace

from agent_campaign import TEMPLATES
from served import BUILD, PATIENCE_S, serve
from sessions_test import folder  # noqa: F401

HERE = pathlib.Path(__file__).parent
UPDATES, PROMPTS, EPISODES = 2, 2, 3


def learn_from(folder, tmp_path, command, rows, *more):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["--actor.model_name_or_path", folder, "--data.prompt_dataset", tmp_path / "rows.jsonl",
             "--data.input_key", "prompt", "--env.command", command, "--env.confined", "false",
             "--rollout.batch_size", PROMPTS, "--rollout.n_samples_per_prompt", EPISODES,
             "--rollout.max_new_tokens", "200", "--rollout.generators", "2", "--train.max_steps", UPDATES,
             "--algo.advantage.estimator", "group_norm", "--run.path", tmp_path / "run", "--run.keep_experience",
             "true", *more]
    done = subprocess.run([BUILD / "troupe", "train", "ppo", *map(str, words)], capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    traced = subprocess.run([BUILD / "troupe", "trace", tmp_path / "run"], capture_output=True, text=True, timeout=60)
    assert traced.returncode == 0, traced.stderr
    traces = [TrainingTrace.model_validate_json(line) for line in traced.stdout.splitlines()]
    assert len(traces) == UPDATES * PROMPTS * EPISODES
    return traces


def test_what_the_agent_was_given_is_what_is_learned_from(folder, tmp_path):  # noqa: F811
    (folder / "chat_template.jinja").write_text("\n" + TEMPLATES["drops"])
    logs, run = tmp_path / "logs", tmp_path / "run"
    logs.mkdir()
    command = f"{sys.executable} -B {HERE / 'agent_program.py'} {logs}"
    traces = learn_from(folder, tmp_path, command, [{"prompt": f"task {i}"} for i in range(8)])
    given = [json.loads(file.read_text()) for file in logs.iterdir()]
    assert len(given) == len(traces) and sum(one["lost"] for one in given) > 0
    turns = [turn for trace in traces for turn in trace.turns]
    learned = sorted(json.dumps([t.prompt_token_ids, t.completion_token_ids, t.per_token_logps]) for t in turns)
    assert learned == sorted(json.dumps(turn) for one in given for turn in one["turns"])
    rollouts = [json.loads(line) for file in (run / "rollouts").iterdir() for line in file.read_text().splitlines()]
    episodes = {(one["step"], one["slot"], one["episode"]): one["reward"] for one in rollouts}
    assert sorted(episodes.values()) == sorted(one["reward"] for one in given)
    assert len(rollouts) > len(episodes), "no episode had a fork"
    first = [turn for turn in turns if turn.node_id.startswith("update-1/")]
    with serve(folder) as address:
        http = httpx.Client(base_url=address, timeout=PATIENCE_S)
        for turn in first:
            prompt = turn.prompt_token_ids
            echo = http.post("/v1/completions", json=dict(
                model="tiny", prompt=prompt + turn.completion_token_ids, max_tokens=0, echo=True,
                logprobs=0)).raise_for_status().json()
            assert echo["choices"][0]["logprobs"]["token_logprobs"][len(prompt):] == turn.per_token_logps


def test_an_agent_with_a_tool_runs_as_it_stands(folder, tmp_path):  # noqa: F811
    command = f"{sys.executable} -B {HERE / '../../docs/examples/calculator_agent.py'}"
    rows = [{"prompt": "sum", "question": f"{i} + 2?", "answer": i + 2} for i in range(8)]
    traces = learn_from(folder, tmp_path, command, rows, "--rollout.max_new_tokens", "24")
    assert all(1 <= len(trace.turns) <= 3 for trace in traces)
