"""OpenEnv's capture, unedited, before sessions of `troupe serve`: its live probe of an engine, and its recording proxy,
through which stock clients talk. What the proxy has recorded and validated is the session's own trace.
"""

import json
import socket

import anthropic
import httpx
import openai
import pytest
from openenv.core.harness.capture import CaptureServer, to_training_trace, validate_llm
from openenv.core.harness.capture.export import export_session
from openenv.core.harness.training import TrainingTrace

from served import PATIENCE_S, made_by, serve
from taught_model import ENDING

# What the probe asks for, and a call that does it: the model is taught to make it.
ASKED = [{"role": "user", "content": "Use the bash tool to list the files in /tmp."}]
BASH = [{"type": "function", "function": {
    "name": "bash", "description": "Run a shell command",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]
CALL = '<tool_call>{"name": "bash", "arguments": {"command": "ls /tmp"}}</tool_call>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("capture") / "tiny"
    made_by("taught_model.py", path, *map(json.dumps, (ASKED, BASH, CALL)))
    (path / "chat_template.jinja").write_text(ENDING)
    return path


@pytest.fixture(scope="module")
def address(folder):
    with serve(folder) as url:
        yield url


@pytest.fixture
def opened(address):
    return httpx.post(address + "/sessions", json={"in_path": True}).raise_for_status().json()


def traced(address, opened):
    answer = httpx.get(opened["base_url"].removesuffix("/v1") + "/traces").raise_for_status()
    return TrainingTrace.model_validate(answer.json()).turns


def told(turns):
    return [(t.prompt_token_ids, t.completion_token_ids, t.per_token_logps, t.loss_mask) for t in turns]


def test_the_live_probe_finds_tokens_and_tools(folder, address, opened, monkeypatch):
    """It also finds that log-probs are those of temperature 1, whatever the temperature (docs/serve.md). It must be
    told that this is wanted, or the server that the log-probs of draws are."""
    report = validate_llm(opened["base_url"], "tiny")
    assert report.logprobs_mode == "raw" and report.capture_level == "logprobs"
    assert [line.split(":")[0] for line in report.findings] == ["[FATAL] raw_logprobs"]
    monkeypatch.setenv("OPENENV_ALLOW_RAW_LOGPROBS", "1")
    for url in (opened["base_url"], address):
        report = validate_llm(url, "tiny")
        assert report.ok and report.trainable and report.reachable and report.served_models == ["tiny"]
        assert (report.tool_support, report.param_fixes) == ("ok", [])
        assert [line.split(":")[0] for line in report.findings] == ["[WARN] raw_logprobs_forced"]
        assert report.n_prompt_ids > 0 and report.n_completion_ids == 8
    monkeypatch.delenv("OPENENV_ALLOW_RAW_LOGPROBS")
    with serve(folder, "--logprobs-mode", "processed_logprobs", "--return-tokens-as-token-ids") as processed:
        report = validate_llm(processed, "tiny")
        assert report.ok and report.trainable and report.logprobs_mode == "processed" and report.findings == []
    first, *more = traced(address, opened)
    assert (len(first.prompt_token_ids), len(first.completion_token_ids)) == (report.n_prompt_ids, 8)
    assert len(more) == 7, "two probes of four calls"
    report = validate_llm(address, "tiny", provider="anthropic", check_tools=False)
    assert report.reachable and report.capture_level == "text" and report.findings == []


@pytest.fixture
def proxy(opened):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = CaptureServer(llm_url=opened["base_url"], model="tiny", port=port)
    server.start(PATIENCE_S)
    try:
        yield server, f"http://127.0.0.1:{port}"
    finally:
        server.stop()


def chat(url, key):
    """A dialogue with a call of a tool, which then goes two ways; by drawn answers that are too short for a call."""
    client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0, timeout=PATIENCE_S)

    def ask(messages, tokens=12, **more):
        return client.chat.completions.create(model="tiny", messages=messages, tools=BASH, max_tokens=tokens, **more)

    said = ask(ASKED, 100).choices[0].message
    assert [json.loads(call.function.arguments) for call in said.tool_calls] == [{"command": "ls /tmp"}]
    begun = [*ASKED, said.model_dump(include={"role", "content", "tool_calls"})]
    for found in ("a b", "c d"):
        way = [*begun, {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": found}]
        text = "".join(chunk.choices[0].delta.content or "" for chunk in ask(way, stream=True) if chunk.choices)
        ask([*way, {"role": "assistant", "content": text}, {"role": "user", "content": "more"}])


def messages(url, key):
    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=PATIENCE_S)
    tool = {"name": "bash", "description": "Run a shell command",
            "input_schema": BASH[0]["function"]["parameters"]}

    def ask(messages):
        return client.messages.create(model="tiny", messages=messages, tools=[tool], max_tokens=100).content

    call, = ask(ASKED)
    assert (call.type, call.input) == ("tool_use", {"command": "ls /tmp"})
    ask([*ASKED, {"role": "assistant", "content": [call]}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": "a b"}]}])


@pytest.mark.parametrize("talk, calls", [(chat, 5), (messages, 2)])
def test_what_its_proxy_records_is_the_sessions_trace(address, opened, proxy, talk, calls):
    server, url = proxy
    session = server.registry.create(capture_level="tokens", purpose="train", sampling={"temperature": 1.0})
    talk(url, session.session_id)
    document = export_session(session)
    assert document["trainable"] and all(row["trainable"] for row in document["sequences"])
    recorded = to_training_trace(session.graph, document).turns
    assert len(recorded) == calls and told(recorded) == told(traced(address, opened))
    assert document["stats"]["n_roots"] == 1, "each turn goes on with the tokens of those before it"
    assert not [line for line in document["validation"] if "FATAL" in line]
    assert min(min(turn.per_token_logps) for turn in recorded) < 0, "not all was certain"
