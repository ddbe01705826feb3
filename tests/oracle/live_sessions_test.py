"""Runs whose episodes come from outside: programs that open sessions at the run, or at a server that joined it, and
environments that are attached. What the run has learned from (`troupe trace`) is what the clients were given by the
stock `openai` package, token for token and bit for bit, with the rewards that they gave.
"""

import contextlib
import json
import pathlib
import re
import signal
import shlex
import socket
import subprocess
import sys
import threading
import time

import httpx
import openai
import pytest

from served import BUILD, PATIENCE_S
from sessions_test import folder  # noqa: F401

HERE = pathlib.Path(__file__).parent
UPDATES, PROMPTS, EPISODES = 2, 2, 2


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def run_of(folder, tmp_path, *more):
    """A run that goes on while the body runs; its end is awaited."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"task {i}", "number": i}) + "\n" for i in range(8)))
    words = ["--actor.model_name_or_path", folder, "--data.prompt_dataset", rows, "--data.input_key", "prompt",
             "--rollout.batch_size", PROMPTS, "--rollout.n_samples_per_prompt", EPISODES,
             "--rollout.max_new_tokens", 12, "--train.max_steps", UPDATES, "--algo.advantage.estimator", "group_norm",
             "--run.path", tmp_path / "run", "--run.keep_experience", "true", *more]
    log = open(tmp_path / "log", "w")
    run = subprocess.Popen([BUILD / "troupe", "train", "ppo", *map(str, words)], stdout=log, stderr=log)
    try:
        yield run
        assert run.wait(600) == 0, (tmp_path / "log").read_text()
    finally:
        run.kill()
        run.wait()


def wait_for(condition, run=None):
    deadline = time.monotonic() + PATIENCE_S
    while not (got := condition()):
        assert time.monotonic() < deadline
        assert run is None or run.poll() is None, "the run has ended"
        time.sleep(0.05)
    return got


def traces_of(tmp_path):
    traced = subprocess.run([BUILD / "troupe", "trace", tmp_path / "run"], capture_output=True, text=True, timeout=60)
    assert traced.returncode == 0, traced.stderr
    return [json.loads(line) for line in traced.stdout.splitlines()]


def rewards_of(tmp_path):
    rollouts = [json.loads(line) for file in (tmp_path / "run" / "rollouts").iterdir()
                for line in file.read_text().splitlines()]
    return {(one["step"], one["slot"], one["episode"]): one["reward"] for one in rollouts}


def dialogue(opened, turns):
    """Some turns by the stock client; returns them as [prompt ids, drawn ids, log-probs]."""
    client = openai.OpenAI(base_url=opened["base_url"], api_key=opened["api_key"], max_retries=0, timeout=PATIENCE_S)
    messages, given = [], []
    for i in range(turns):
        messages.append({"role": "user", "content": f"{i}?"})
        answer = client.chat.completions.create(model="tiny", messages=messages, max_tokens=6, logprobs=True,
                                                extra_body={"return_token_ids": True})
        choice = answer.choices[0]
        messages.append({"role": "assistant", "content": choice.message.content})
        given.append([answer.prompt_token_ids, choice.token_ids, [one.logprob for one in choice.logprobs.content]])
    return given


def check_learned(tmp_path, logs):
    turns = [turn for trace in traces_of(tmp_path) for turn in trace["turns"]]
    learned = sorted(json.dumps([t["prompt_token_ids"], t["completion_token_ids"], t["per_token_logps"]])
                     for t in turns)
    assert learned == sorted(json.dumps(turn) for log in logs for turn in log["turns"])
    assert sorted(rewards_of(tmp_path).values()) == sorted(log["reward"] for log in logs)


def client_of_sessions(http, run, logs, headers=None):
    """Opens sessions and gives rewards until the run has ended."""
    while run.poll() is None:
        try:
            opened = http.post("/sessions", headers=headers)
        except httpx.TransportError:
            continue  # not there yet, or there no more
        if opened.status_code != 200 or "task" not in opened.json():
            time.sleep(0.02)
            continue
        opened = opened.json()
        assert opened["task"]["prompt"] == f"task {opened['task']['number']}"
        reward = len(logs) / 8
        try:
            given = dialogue(opened, 1 + len(logs) % 3)
            own = {"Authorization": f"Bearer {opened['api_key']}"}
            http.post(f"/sessions/{opened['id']}/end", headers=own).raise_for_status()
            http.post(f"/sessions/{opened['id']}/reward", json={"reward": reward}, headers=own).raise_for_status()
        except (openai.APIError, httpx.HTTPError):
            continue  # the run ended meanwhile
        logs.append({"turns": given, "reward": reward})


@pytest.mark.parametrize("way", ["made", "given", "open"])
def test_programs_from_outside_open_sessions_of_a_run(folder, tmp_path, monkeypatch, way):  # noqa: F811
    monkeypatch.setenv("TEST_SESSION_KEY", "sesame")
    port, logs, made = free_port(), [], tmp_path / "run" / "listen_key"
    more = {"made": [], "given": ["--env.listen_key", "env:TEST_SESSION_KEY"], "open": ["--env.open", "true"]}[way]
    with run_of(folder, tmp_path, "--env.listen", f"127.0.0.1:{port}", *more, "--session.reward_timeout_s", 2) as run:
        http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S)

        def there():
            with contextlib.suppress(httpx.TransportError):
                return http.get("/sessions").status_code == (405 if way == "open" else 401)
        wait_for(there, run)
        if way == "made":
            assert made.stat().st_mode & 0o777 == 0o600
            assert f"with the key in {made}" in (tmp_path / "run" / "nodes" / "environment.log").read_text()
        assert made.exists() == (way == "made")
        key = {"made": lambda: {"Authorization": f"Bearer {made.read_text().strip()}"},
               "given": lambda: {"Authorization": "Bearer sesame"}, "open": dict}[way]()
        # One session that is never rewarded: its episode does not count, and its group goes on.
        silent = wait_for(lambda: (got := http.post("/sessions", headers=key)).status_code == 200 and got.json(), run)
        dialogue(silent, 1)
        client_of_sessions(http, run, logs, key)
    # The last sessions may have come too late for an update; what was learned from is among what was given.
    turns = [turn for trace in traces_of(tmp_path) for turn in trace["turns"]]
    learned = [json.dumps([t["prompt_token_ids"], t["completion_token_ids"], t["per_token_logps"]]) for t in turns]
    given = [json.dumps(turn) for log in logs for turn in log["turns"]]
    assert learned and len(set(learned)) == len(learned) and set(learned) <= set(given)
    rewards = rewards_of(tmp_path)
    assert len(rewards) >= UPDATES * PROMPTS * EPISODES - 1 and set(rewards.values()) <= {log["reward"] for log in logs}
    assert 0 not in rewards.values() or any(log["reward"] == 0 for log in logs)


def test_a_run_learns_from_the_sessions_of_a_server_that_joined_it(folder, tmp_path):  # noqa: F811
    logs = []
    with run_of(folder, tmp_path, "--env.attached", "true") as run:
        wait_for(lambda: (tmp_path / "run" / "company.json").exists(), run)
        words = ["serve", "--model", folder, "--join", tmp_path / "run", "--learn", "--port", "0", "--threads", "1",
                 "--served-model-name", "tiny"]
        with open(tmp_path / "serve", "w") as out:
            server = subprocess.Popen([BUILD / "troupe", *map(str, words)], stdout=out, stderr=out)
        try:
            def address():
                found = re.search(r"http://127\.0\.0\.1:\d+", (tmp_path / "serve").read_text())
                return found and found.group(0)
            http = httpx.Client(base_url=wait_for(address, run), timeout=PATIENCE_S)
            wait_for(lambda: http.get("/health").status_code == 200, run)
            client_of_sessions(http, run, logs)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(PATIENCE_S)
    learned = {json.dumps(turn["completion_token_ids"] + turn["per_token_logps"])
               for trace in traces_of(tmp_path) for turn in trace["turns"]}
    given = {json.dumps(turn[1] + turn[2]) for log in logs for turn in log["turns"]}
    assert learned and learned <= given
    assert len(rewards_of(tmp_path)) == UPDATES * PROMPTS * EPISODES


def test_environments_are_attached_and_detached(folder, tmp_path):  # noqa: F811
    """Two agents of other processes take the episodes; one is detached on the way, one is killed and comes back."""
    command = shlex.join([sys.executable, "-B", str(HERE / "fixed_agent.py")])

    def attach(name):
        words = ["attach", "environment", "--join", tmp_path / "run", "--name", name, "--command",
                 f"{command} {shlex.quote(str(tmp_path))} {name}", "--no-confined"]
        return subprocess.Popen([BUILD / "troupe", *map(str, words)], stdout=subprocess.DEVNULL)

    updates = 10  # of 0.2 s and more, so that there is time to come and go
    with run_of(folder, tmp_path, "--env.attached", "true", "--train.max_steps", updates) as run:
        wait_for(lambda: (tmp_path / "run" / "company.json").exists(), run)
        first, second = attach("left"), attach("right")
        wait_for(lambda: list(tmp_path.glob("left-*.json")) and list(tmp_path.glob("right-*.json")), run)
        second.kill()
        second.wait()
        third = attach("again")
        wait_for(lambda: list(tmp_path.glob("again-*.json")), run)
        detached = subprocess.run([BUILD / "troupe", "detach", "environment", "--join", tmp_path / "run", "--name",
                                   "left"], capture_output=True, text=True, timeout=PATIENCE_S)
        assert detached.returncode == 0, detached.stderr
        assert first.wait(PATIENCE_S) == 0
    assert third.wait(PATIENCE_S) == 0
    assert len(rewards_of(tmp_path)) == updates * PROMPTS * EPISODES
    given = [json.dumps(turn) for file in tmp_path.glob("*-*.json") for turn in json.loads(file.read_text())["turns"]]
    learned = [json.dumps([t["prompt_token_ids"], t["completion_token_ids"], t["per_token_logps"]])
               for trace in traces_of(tmp_path) for t in trace["turns"]]
    assert len(learned) == updates * PROMPTS * EPISODES and set(learned) <= set(given)


def test_calls_of_a_run_may_be_guided(folder, tmp_path):  # noqa: F811
    more = json.dumps({"structured_outputs": {"regex": "[a-c]{3}"}, "max_tokens": 9})
    command = shlex.join([sys.executable, "-B", str(HERE / "fixed_agent.py"), str(tmp_path), "guided", more])
    with run_of(folder, tmp_path, "--env.command", command, "--env.confined", "false"):
        pass
    given = [json.loads(file.read_text()) for file in tmp_path.glob("guided-*.json")]
    assert len(given) == UPDATES * PROMPTS * EPISODES
    assert all(re.fullmatch("[a-c]{3}", one["text"]) for one in given)
    turns = [turn for trace in traces_of(tmp_path) for turn in trace["turns"]]
    for turn in turns:
        kept = turn["metadata"]["log_kept_mass"]
        assert len(kept) == len(turn["per_token_logps"]) and all(one < 0 for one in kept)
        # Under the grammar a token had at least the probability that it has in all of the vocabulary, and at most 1.
        assert all(p <= k for p, k in zip(turn["per_token_logps"], kept))
    assert (tmp_path / "run/nodes/environment.log").read_text().count("tokens drawn under a grammar") == 1


@pytest.mark.parametrize("words, says", [
    (["--name", "a"], "exactly one of"),
    (["--name", "a", "--python", "/no/such.py"], "no file /no/such.py"),
    (["--name", "7", "--openenv", "http://127.0.0.1:1"], "not digits"),
    (["--openenv", "http://127.0.0.1:1"], "--name is not set")])
def test_wrong_words_are_refused(words, says, tmp_path):
    refused = subprocess.run([BUILD / "troupe", "attach", "environment", "--join", tmp_path, *words],
                             capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0 and says in refused.stderr
