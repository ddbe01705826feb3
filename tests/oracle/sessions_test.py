"""Sessions of `troupe serve` under random agents with the stock `openai` package. What the client was given, token for
token and bit for bit, is what the session's trace holds; the trace is a valid one of OpenEnv's; a call that goes on has
the tokens of the calls before it as they were drawn; and a server that knows nothing of the sessions gives every drawn
token the same log-prob.
"""

import json
import os

import httpx
import pytest
from openenv.core.harness.training import TrainingTrace

from agent_campaign import TEMPLATES, Campaign, Session
from served import PATIENCE_S, made_by, serve

TURNS = int(os.environ.get("TROUPE_TURNS", "2000"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_by("random_model.py", tmp_path_factory.mktemp("sessions") / "tiny")


def traced(http, session):
    trace = http.get(f"/sessions/{session.id}/traces").raise_for_status().json()
    TrainingTrace.model_validate(trace)  # ids, masks and log-probs fit each other
    return trace["turns"]


def key(prompt, drawn, logprobs):
    return json.dumps([prompt, drawn, logprobs])


def gone_on(turns):
    """How many calls have all tokens of another, as they were drawn, in front."""
    whole = {tuple(t["prompt_token_ids"] + t["completion_token_ids"]) for t in turns}
    return sum(any(tuple(t["prompt_token_ids"][:n]) in whole for n in range(1, len(t["prompt_token_ids"])))
               for t in turns)


@pytest.mark.parametrize("template", TEMPLATES)
def test_client_trace_and_a_fresh_process_agree(folder, tmp_path, template):
    (tmp_path / "template.jinja").write_text(TEMPLATES[template])
    campaign = Campaign(seed=len(template))
    with serve(folder, "--chat-template", str(tmp_path / "template.jinja")) as address:
        http = httpx.Client(base_url=address, timeout=PATIENCE_S)
        sessions = [Session(address, http.post("/sessions", json={}).raise_for_status().json()) for _ in range(8)]
        for i in range(TURNS // len(TEMPLATES)):
            campaign.step(sessions[i % len(sessions)])
        traces = {one.id: traced(http, one) for one in sessions}
        states = [http.get(f"/sessions/{one.id}").json() for one in sessions]
    assert campaign.lost > 0
    kept = sorted((name, key(t["prompt_token_ids"], t["completion_token_ids"], t["per_token_logps"]))
                  for name, turns in traces.items() for t in turns)
    given = sorted((name, key(prompt, drawn, logprobs)) for name, prompt, drawn, logprobs in campaign.turns)
    assert kept == given
    assert sum(gone_on(turns) for turns in traces.values()) > len(campaign.turns) // 4
    forked = sum(state["forked_by_template"] for state in states)
    assert (forked > 0) == (template == "drops")
    with serve(folder) as address:
        http = httpx.Client(base_url=address, timeout=PATIENCE_S)
        for _, prompt, drawn, logprobs in campaign.turns:
            echo = http.post("/v1/completions", json=dict(model="tiny", prompt=prompt + drawn, max_tokens=0, echo=True,
                                                          logprobs=0)).raise_for_status().json()
            assert echo["choices"][0]["logprobs"]["token_logprobs"][len(prompt):] == logprobs


def test_rewards_and_errors(folder):
    with serve(folder, "--api-key", "sesame") as address:
        http = httpx.Client(base_url=address, timeout=PATIENCE_S)
        assert http.post("/sessions", json={}).status_code == 401
        opened = http.post("/sessions", json={}, headers={"Authorization": "Bearer sesame"}).json()
        own = {"Authorization": f"Bearer {opened['api_key']}"}
        body = dict(model="tiny", prompt=[1, 2], max_tokens=2)
        assert http.post("/v1/completions", json=body, headers=own).status_code == 200
        assert http.get("/v1/models", headers=own).status_code == 200
        assert http.post("/v1/completions", json=body).status_code == 401
        here = f"/sessions/{opened['id']}"
        for control in ("/pause", "/resume", "/sleep", "/wake_up"):
            assert http.post(control, headers=own).status_code == 401, "a session's key, which is not the server's"
            assert http.post(here + control).status_code == 401
        assert http.post("/pause", headers={"Authorization": "Bearer sesame"}).status_code == 200
        assert http.post("/resume", headers={"Authorization": "Bearer sesame"}).status_code == 200
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
        assert http.post(here + "/reward", json={"reward": 1}).status_code == 400
        turn, = http.get(here + "/traces").json()["turns"]
        assert turn["metadata"]["reward"] == 1 and len(turn["completion_token_ids"]) <= 2
