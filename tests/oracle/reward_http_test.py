"""Remote rewards both ways, in the shapes of OpenRLHF 0.11 (2026-08): a client written like its own
against the real `troupe serve-reward`, and a server written like its own against the real reward role
(tests/oracle/reward_driver.cpp). OpenRLHF's files: openrlhf/utils/agent.py
(SingleTurnAgentExecutor._fetch_rewards_via_http), openrlhf/utils/remote_rm_utils.py of older releases,
openrlhf/cli/serve_rm.py, openrlhf/trainer/ppo_utils/samples_generator.py, examples/python/reward_func.py.
The format of one sample a request is that of slime (2026-10), slime/rollout/rm_hub/__init__.py (remote_rm).
Only the HTTP libraries differ: the standard library instead of aiohttp, requests and FastAPI.
"""

import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import pytest
import torch

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
ORACLE_BIN = pathlib.Path(__file__).parents[2] / ".venv/oracle/bin"
PATIENCE_S = 60

# After examples/python/reward_func.py: tensors in a dictionary; a reward that depends on all inputs.
REWARD_FUNC = '''
import torch

def reward_func(queries, prompts, labels, **kwargs):
    print(queries)
    right = [float(q == p + " " + l) for q, p, l in zip(queries, prompts, labels)]
    reward = torch.tensor(right) * 2 - 0.5
    return {"rewards": reward, "scores": reward, "extra_logs": {"dummy_scores": reward}}
'''


@contextlib.contextmanager
def serve_reward(*flags):
    """The real server on a free port; gives the process and its URL; ends it by SIGINT, cleanly."""
    environment = dict(os.environ, PATH=f"{ORACLE_BIN}:{os.environ['PATH']}")
    process = subprocess.Popen([BUILD / "troupe", "serve-reward", "--listen", "127.0.0.1:0", *flags],
                               stdout=subprocess.PIPE, text=True, env=environment)
    try:
        line = process.stdout.readline()
        yield re.search(r"http://127\.0\.0\.1:\d+", line).group(0)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert process.stdout.read() == "stopped\n"
    finally:
        process.kill()
        process.wait()


def post(url, payload, headers=()):
    """aiohttp's and requests' `json=`; a status of 400 and above raises, as raise_for_status does."""
    request = urllib.request.Request(url, json.dumps(payload).encode(),
                                     {"Content-Type": "application/json", **dict(headers)})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        return json.load(response)


def fetch_like_openrlhf(url, query, prompt, label):
    """agent.py: one sample a request, then what becomes of the reply there and in samples_generator."""
    info = post(url, {"query": [query], "prompts": [prompt], "labels": [label]})
    score = info.get("scores")
    if score is None:
        score = info.get("rewards")
    reward, logs = info.get("rewards"), info.get("extra_logs") or {}
    for key, value in logs.items():
        torch.tensor([value])
    return torch.tensor([reward]).flatten(), torch.tensor([score]).flatten()


@pytest.fixture(scope="module")
def python_server(tmp_path_factory):
    file = tmp_path_factory.mktemp("reward") / "reward_func.py"
    file.write_text(REWARD_FUNC)
    with serve_reward("--python", str(file)) as url:
        yield url


@pytest.mark.parametrize("path", ["/get_reward", "/"])
def test_openrlhf_client_gets_its_rewards(python_server, path):
    reward, score = fetch_like_openrlhf(python_server + path, "2 + 2 = 4", "2 + 2 =", "4")
    assert reward.tolist() == [1.5] and score.tolist() == [1.5]
    reward, _ = fetch_like_openrlhf(python_server + path, "2 + 2 = 5", "2 + 2 =", "4")
    assert reward.tolist() == [-0.5]


def fetch_like_slime(url, prompt, response, label):
    """remote_rm: what the server sends is the reward, or a dictionary of which `reward_key` is."""
    return post(url, {"prompt": prompt, "response": response, "label": label})


def test_slime_client_gets_its_reward(python_server):
    assert fetch_like_slime(python_server, "2 + 2 =", " 4", "4") == 1.5
    assert fetch_like_slime(python_server, "2 + 2 =", " 5", "4") == -0.5
    assert fetch_like_slime(python_server, "Ü =", " ß", "ß") == 1.5
    assert post(python_server, {"prompt": ["a", "b"], "response": [" c", " d"], "label": ["c", "x"]}) == [1.5, -0.5]


def test_slime_client_sees_a_sample_without_a_score_as_an_error(tmp_path):
    (tmp_path / "reward.py").write_text("def reward_func(queries, prompts, labels):\n    return [None]\n")
    with serve_reward("--python", str(tmp_path / "reward.py")) as url:
        with pytest.raises(urllib.error.HTTPError, match="422"):
            fetch_like_slime(url, "p", "r", "l")


def test_async_rewards_of_many_clients_run_together(tmp_path):
    """Each client's answer waits until all clients are there."""
    (tmp_path / "reward.py").write_text(
        "import asyncio\nthere = []\n"
        "async def reward_func(queries, prompts, labels):\n"
        "    there.append(prompts[0])\n"
        "    while len(there) < 20: await asyncio.sleep(0.001)\n"
        "    return [float(p) for p in prompts]\n")
    with serve_reward("--python", str(tmp_path / "reward.py")) as url:
        with concurrent.futures.ThreadPoolExecutor(20) as clients:
            answers = list(clients.map(lambda i: fetch_like_slime(url, str(i), "", ""), range(20)))
    assert answers == list(range(20))


def test_queries_arrive_unchanged(python_server):
    """With special tokens, a BOS in front of the prompt, and text beyond ASCII."""
    for query, prompt, label in [("<s>Ü =\n ß</s>", "<s>Ü =\n", "ß</s>"), ("a b", "a", "b")]:
        reward, _ = fetch_like_openrlhf(python_server, query, prompt, label)
        assert reward.tolist() == [1.5]


def test_older_client_posts_a_batch_with_other_keys_missing(tmp_path):
    file = tmp_path / "lengths.py"
    file.write_text("def reward_func(queries, prompts, labels):\n    return [len(q) for q in queries]\n")
    with serve_reward("--python", str(file)) as url:
        response = post(url + "/get_reward", {"query": ["a", "bb", "cccc"]})
        assert "rewards" in response
        assert response["rewards"] == [1, 2, 4]
        # A client with several servers sends empty shares to some of them.
        assert post(url, {"query": [], "prompts": [], "labels": []})["rewards"] == []


def test_many_clients_at_once(python_server):
    def one(i):
        return fetch_like_openrlhf(python_server, f"{i} {i % 2}", str(i), "0")[0].tolist()

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert list(pool.map(one, range(48))) == [[1.5 if i % 2 == 0 else -0.5] for i in range(48)]


def status_of(url, payload, headers=()):
    with pytest.raises(urllib.error.HTTPError) as raised:
        post(url, payload, headers)
    return raised.value.code, json.load(raised.value)


def test_a_failure_is_never_a_number(tmp_path):
    """What OpenRLHF retries (a status) instead of a null that torch.tensor would choke on."""
    file = tmp_path / "sometimes.py"
    file.write_text("def f(prompts, completions):\n"
                    "    if 'boom' in completions: raise ValueError('no such thing')\n"
                    "    return [None if c == 'none' else float(c) for c in completions]\n")
    with serve_reward("--python", str(file)) as url:
        samples = {"query": ["1", "none", "nan"], "prompts": ["", "", ""], "labels": ["", "", ""]}
        status, reply = status_of(url, samples)
        assert status == 422 and reply["rewards"] == [1, None, None] and reply["causes"][1]
        reply = post(url, samples, {"Troupe-Missing": "null"}.items())
        assert reply["rewards"] == [1, None, None]
        status, reply = status_of(url, {"query": ["boom"]})
        assert status == 500 and "no such thing" in reply["error"]
        assert status_of(url, {"query": "text"})[0] == 400
        assert status_of(url, ["x"])[0] == 400
        assert status_of(url + "/other", {"query": []})[0] == 404
        assert post(url, {"query": ["2"]})["rewards"] == [2]


def test_rule_with_endings_and_health():
    with serve_reward("--rule", "exact", "--strip-end", "<|im_end|>", "--strip-end", "\n") as url:
        reward, _ = fetch_like_openrlhf(url, "2+2= 4<|im_end|>\n", "2+2=", "4")
        assert reward.tolist() == [1.0]
        with urllib.request.urlopen(url + "/healthz", timeout=PATIENCE_S) as response:
            assert json.load(response)["status"] == "ok"
        request = urllib.request.Request(url + "/healthz", headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(request, timeout=PATIENCE_S)


@pytest.mark.parametrize("flags, part", [
    (["--rule", "exact", "--listen", "0.0.0.0:0"], "--insecure"),
    (["--rule", "exact", "--listen", "5000"], "HOST:PORT"),
    (["--rule", "guess"], "last_number"),
    (["--rule", "regex"], "--pattern"),
    ([], "--python"),
    (["--rule", "exact", "--python", "x.py"], "either"),
    (["--rule", "exact", "--workers", "2"], "--workers is read with --python"),
    (["--python", "x.py", "--workers", "0"], "--workers"),
    (["--python", "/nonexistent.py"], "/nonexistent.py"),
])
def test_mistakes_name_the_flag(flags, part):
    done = subprocess.run([BUILD / "troupe", "serve-reward", *flags], text=True, timeout=PATIENCE_S,
                          capture_output=True)
    assert done.returncode == 2 and part in done.stderr


# ---- the other way: our reward role against a server like OpenRLHF's ---------------------------------


class ServeRm(http.server.BaseHTTPRequestHandler):
    """serve_rm.py's `get_reward`; `faults` says what to do instead for the next requests."""

    protocol_version = "HTTP/1.1"
    faults, seen = [], []

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, data))
        queries = data.get("query")
        rewards = [len(query) / 4 for query in queries]
        result = {"rewards": rewards, "scores": rewards, "extra_logs": {"dummy_scores": rewards}}
        status, body = 200, json.dumps(result, ensure_ascii=False, separators=(",", ":"))
        if self.faults:
            status, body = self.faults.pop(0)
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def openrlhf_server():
    ServeRm.faults, ServeRm.seen = [], []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ServeRm)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/get_reward"
    server.shutdown()
    thread.join()
    server.server_close()


def role_scores(url, *batches, flags=()):
    lines = "".join(json.dumps(batch) + "\n" for batch in batches)
    done = subprocess.run([BUILD / "bin" / "reward_driver", *flags, url], input=lines, text=True, check=True,
                          capture_output=True, timeout=PATIENCE_S)
    return [json.loads(line) for line in done.stdout.splitlines()]


BATCH = {"prompt": "2+Ü=", "response": ["4", "ber"], "label": "4"}


def test_the_role_sends_what_openrlhf_sends(openrlhf_server):
    assert role_scores(openrlhf_server, BATCH) == [{"values": [1.25, 1.75], "causes": ["", ""]}]
    assert ServeRm.seen == [("/get_reward", {"query": ["2+Ü=4", "2+Ü=ber"], "prompts": ["2+Ü=", "2+Ü="],
                                             "labels": ["4", "4"]})]


class SlimeRm(ServeRm):
    """A server of slime's users: a number, or a dictionary."""

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(data)
        reward = float(data["response"] == data["label"])
        content = json.dumps(reward if reward else {"reward": reward, "why": "wrong"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def test_the_role_sends_what_slime_sends():
    SlimeRm.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlimeRm)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        assert role_scores(url, BATCH, flags=["--sample"]) == [{"values": [1.0, 0.0], "causes": ["", ""]}]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert sorted(SlimeRm.seen, key=lambda data: data["response"]) == [
        {"prompt": "2+Ü=", "response": response, "label": "4"} for response in ("4", "ber")]


def test_a_failing_server_is_away_and_left_to_who_can_wait(openrlhf_server):
    ServeRm.faults += [(500, "Internal Server Error"), (503, "")]
    first, second, third = role_scores(openrlhf_server, BATCH, BATCH, BATCH)
    assert first["code"] == second["code"] == "peer lost" and "status 503" in second["error"]
    assert third["values"] == [1.25, 1.75]
    assert len(ServeRm.seen) == 3


@pytest.mark.parametrize("status, body", [
    (500, "x"), (200, ""), (200, "<html>"), (200, "{}"), (200, '{"rewards": [1]}'),
    (200, '{"rewards": [NaN, 1]}'), (200, '{"rewards": [1, 1, 1]}'), (404, '{"detail":"Not Found"}'),
])
def test_no_failure_of_the_server_becomes_a_score(openrlhf_server, status, body):
    ServeRm.faults += [(status, body)] * 10
    [reply] = role_scores(openrlhf_server, BATCH)
    assert "values" not in reply and openrlhf_server in reply["error"]


def test_other_replies_are_understood(openrlhf_server):
    ServeRm.faults += [(200, "[0.5, 2]"), (200, '{"scores": [[0.5], [2]]}'), (200, '{"rewards": [null, 2]}')]
    first, second, third = role_scores(openrlhf_server, BATCH, BATCH, BATCH)
    assert first["values"] == second["values"] == [0.5, 2]
    assert third["values"] == [None, 2] and "null" in third["causes"][0]


def test_troupe_to_troupe_a_server_that_judges_is_not_away(tmp_path):
    file = tmp_path / "some.py"
    file.write_text("def f(prompts, completions):\n"
                    "    if 'boom' in completions: raise ValueError('no such thing')\n"
                    "    return [1.0 if c == '4' else None for c in completions]\n")
    with serve_reward("--python", str(file)) as url:
        some, none = role_scores(url + "/get_reward", BATCH, {**BATCH, "response": ["4", "boom"]})
    assert some["values"] == [1.0, None] and "not a finite number" in some["causes"][1]
    assert none["values"] == [None, None] and "no such thing" in none["causes"][0]
