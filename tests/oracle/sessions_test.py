"""Sessions of `troupe serve` under random agents with the stock `openai` package. What the client was given, token for
token and bit for bit, is what the session's trace holds; the trace is a valid one of OpenEnv's; a call that goes on has
the tokens of the calls before it as they were drawn (`Agent.keep`); and a server that knows nothing of the sessions
gives every drawn token the same log-prob.
"""

import collections
import os

import httpx
import pytest
from openenv.core.harness.training import TrainingTrace

from agent_campaign import Agent, pool
from agent_dialogue import TEMPLATES
from agent_model import make_model
from agent_run import recompute, tokens_of
from served import PATIENCE_S, serve

TURNS = int(os.environ.get("TROUPE_TURNS", "300"))  # 2,000 go through a run: agent_run_test.py
SESSIONS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("sessions") / "tiny"
    make_model(path, TEMPLATES["plain"])
    return path


def own(opened):
    return {"Authorization": f"Bearer {opened['api_key']}"}


def traced(http, opened):
    trace = http.get(f"/sessions/{opened['id']}/traces", headers=own(opened)).raise_for_status().json()
    TrainingTrace.model_validate(trace)  # ids, masks and log-probs fit each other
    return trace["turns"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_client_trace_and_a_fresh_process_agree(folder, tmp_path, template):
    (tmp_path / "template.jinja").write_text(TEMPLATES[template])
    with serve(folder, "--chat-template", str(tmp_path / "template.jinja")) as address:
        http = httpx.Client(base_url=address, timeout=PATIENCE_S)
        opened = [http.post("/sessions", json={}).raise_for_status().json() for _ in range(SESSIONS)]
        connections = pool()
        agents = [Agent(one["base_url"], one["api_key"], connections, f"{template} {i}", template, tools=i % 2 > 0)
                  for i, one in enumerate(opened)]
        for i in range(TURNS // len(TEMPLATES)):
            agents[i % SESSIONS].step()
        traces = [traced(http, one) for one in opened]
        forked = sum(http.get(f"/sessions/{one['id']}", headers=own(one)).json()["forked_by_template"]
                     for one in opened)
    assert sum(agent.lost for agent in agents) > 0
    for agent, turns in zip(agents, traces, strict=True):
        kept = [(turn["prompt_token_ids"], turn["completion_token_ids"], turn["per_token_logps"]) for turn in turns]
        assert tokens_of(kept) == tokens_of(turn[:3] for turn in agent.turns)
    ways = sum((agent.past.ways for agent in agents), collections.Counter())
    assert ways["going on"] > 0 and (forked > 0) == (ways["rewritten"] > 0) == (template == "drops")
    given = [(tuple(prompt + drawn), logprobs) for agent in agents for prompt, drawn, logprobs, _ in agent.turns]
    logprobs_of = recompute(folder, [ids for ids, _ in given])
    for ids, logprobs in given:
        assert logprobs_of(ids)[-len(logprobs):] == logprobs


def test_a_retry_takes_the_place_of_the_lost_answer_alone(folder):
    """The same is asked twice; the second answer is cut off and asked for again: the first one stays."""
    with serve(folder) as address:
        http = httpx.Client(base_url=address, timeout=PATIENCE_S)
        opened = http.post("/sessions", json={}).raise_for_status().json()
        agent = Agent(opened["base_url"], opened["api_key"], pool(), 1)
        client, given = agent.clients[0], dict(model="tiny", messages=[{"role": "user", "content": "a"}], max_tokens=9,
                                               logprobs=True, **agent.given)
        answers = [agent.whole(client, given)]
        endless = {**given, "extra_body": {**given["extra_body"], "ignore_eos": True}}
        agent.cut_stream(client, endless, 3500)
        answers.append(agent.whole(client, {**given, "extra_headers": {"x-stainless-retry-count": "1"}}))
        kept = [turn["completion_token_ids"] for turn in traced(http, opened)]
        assert kept == [drawn for _, drawn, *_ in answers]


def test_rewards_and_errors(folder):
    with serve(folder, "--api-key", "sesame") as address:
        http = httpx.Client(base_url=address, timeout=PATIENCE_S)
        assert http.post("/sessions", json={}).status_code == 401
        opened = http.post("/sessions", json={}, headers={"Authorization": "Bearer sesame"}).json()
        other = http.post("/sessions", json={}, headers={"Authorization": "Bearer sesame"}).json()
        body = dict(model="tiny", prompt=[1, 2], max_tokens=2)
        assert http.post("/v1/completions", json=body, headers=own(opened)).status_code == 200
        assert http.get("/v1/models", headers=own(opened)).status_code == 200
        assert http.post("/v1/completions", json=body).status_code == 401
        here = f"/sessions/{opened['id']}"
        for control in ("/pause", "/resume", "/sleep", "/wake_up"):
            assert http.post(control, headers=own(opened)).status_code == 401, "a session's key, which is not the server's"
            assert http.post(here + control).status_code == 401
            assert http.post(here + control, headers=own(opened)).status_code == 401
        assert http.post("/pause", headers={"Authorization": "Bearer sesame"}).status_code == 200
        assert http.post("/resume", headers={"Authorization": "Bearer sesame"}).status_code == 200
        # The id, which stands in logs, opens nothing: neither does it as a key, nor the key in the path, nor another's.
        assert opened["id"] in opened["base_url"] and opened["api_key"] not in opened["base_url"]
        for wrong in ({}, {"Authorization": f"Bearer {opened['id']}"}, own(other)):
            for path in ("", "/traces", "/v1/models"):
                assert http.get(here + path, headers=wrong).status_code == 401, (path, wrong)
            assert http.post(here + "/v1/completions", json=body, headers=wrong).status_code == 401
            assert http.post(here + "/reward", json={"reward": 0}, headers=wrong).status_code == 401
        assert http.get(f"/sessions/{opened['api_key']}").status_code == 401
        assert http.get(here, headers={"Authorization": "Bearer sesame"}).json()["calls"] == 1, "who has opened it"
        http.headers.update(own(opened))
        assert http.post(here + "/reward", json={"reward": 0.5}).json()["reward"] == 0.5
        assert http.post(here + "/reward", json={"reward": 1, "call": 0}).status_code == 200
        for wrong in ({"reward": "much"}, {}, {"reward": 1, "call": 9}, {"reward": 1, "turn": 0}, {"reward": True}):
            refused = http.post(here + "/reward", json=wrong)
            assert refused.status_code == 400 and refused.json()["error"]["message"], wrong
        assert http.post(here + "/v1/completions", json={**body, "prompt": [[1], [2]]}).status_code == 400
        assert http.post(here + "/v1/completions", json={**body, "max_tokens": 0, "echo": True}).status_code == 400
        assert http.get("/sessions/nobody").status_code in (401, 404)
        assert http.post(here + "/end").json()["ended"] is True
        assert http.post(here + "/v1/completions", json=body).status_code == 409
        assert http.post(here + "/reward", json={"reward": 0.25}).json()["reward"] == 0.25, "it may come late"
        turn, = http.get(here + "/traces").json()["turns"]
        assert turn["metadata"]["reward"] == 1 and len(turn["completion_token_ids"]) <= 2


def test_a_client_that_sends_no_key_has_it_in_its_path(folder):
    with serve(folder) as address:
        opened = httpx.post(address + "/sessions", json={"in_path": True}).raise_for_status().json()
        assert opened["base_url"] == f"{address}/sessions/{opened['api_key']}/v1"
        bare = httpx.Client(base_url=opened["base_url"].removesuffix("/v1"), timeout=PATIENCE_S)
        assert bare.post("/v1/completions", json=dict(prompt=[1, 2], max_tokens=2)).status_code == 200
        assert bare.post("/reward", json={"reward": 0.5}).json() == {
            "id": opened["id"], "calls": 1, "reward": 0.5, "forked_by_template": 0, "ended": False}
        assert httpx.get(f"{address}/sessions/{opened['id']}").status_code == 401
        assert httpx.get(f"{address}/sessions/{opened['id']}.{'0' * 32}").status_code == 401
        refused = httpx.get(f"{address}/sessions/nobody.{opened['api_key']}")
        assert refused.status_code == 404 and opened["api_key"] not in refused.text
