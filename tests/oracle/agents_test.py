"""`troupe serve` for agents, with stock clients of the `agents` environment: Anthropic's Messages give the ids
that the same dialogue gives as an OpenAI chat, whole and streamed, with tools over two turns; so does the
package renderers by POST /inference/v1/generate. Over TLS, and within the limits of a key.
"""

import asyncio
import concurrent.futures
import json
import ssl
import subprocess
import time

import anthropic
import httpx
import openai
import pytest
from renderers import DefaultRendererConfig, create_renderer
from renderers.client import OverlongPromptError, generate
from transformers import AutoTokenizer

from byte_model import END
from served import BUILD, PATIENCE_S, made_by, serve
from taught_model import QUESTION, SAID, TOOLS

KEY = "sesame"
ADD = {"name": "add", "description": "a sum", "input_schema": TOOLS[0]["function"]["parameters"]}
IDS = {"return_token_ids": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_by("taught_model.py", tmp_path_factory.mktemp("agents") / "tiny")


@pytest.fixture(scope="module")
def address(folder):
    with serve(folder, "--api-key", KEY) as url:
        yield url


@pytest.fixture(scope="module")
def chats(address):
    return openai.OpenAI(base_url=address + "/v1", api_key=KEY, max_retries=0, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def client(address):
    return anthropic.Anthropic(base_url=address, api_key=KEY, max_retries=0, timeout=PATIENCE_S)


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline


def ask(client, messages, **more):
    given = dict(model="tiny", messages=messages, tools=[ADD], max_tokens=200,
                 extra_body={"temperature": 0, **IDS})
    return client.messages.create(**{**given, **more})


def ask_chat(chats, messages, **more):
    given = dict(model="tiny", messages=messages, tools=TOOLS, max_tokens=200, temperature=0, extra_body=IDS)
    return chats.chat.completions.create(**{**given, **more})


def test_two_turns_with_a_tool_are_those_of_a_chat(client, chats):
    first, same = ask(client, QUESTION), ask_chat(chats, QUESTION)
    assert first.prompt_token_ids == same.prompt_token_ids
    assert first.token_ids == same.choices[0].token_ids == [*SAID.encode(), END]
    assert first.id.startswith("msg_") and first.type == "message" and first.role == "assistant"
    assert first.model == "tiny" and first.stop_reason == "tool_use" and first.stop_sequence is None
    assert first.usage.input_tokens == len(first.prompt_token_ids) == same.usage.prompt_tokens
    assert first.usage.output_tokens == len(first.token_ids)
    text, use = first.content
    assert (text.type, text.text) == ("text", "Adding.")
    assert (use.type, use.name, use.input) == ("tool_use", "add", {"b": 2, "a": 1})
    # What agents send back: the blocks as they came, and the result.
    more = [*QUESTION, {"role": "assistant", "content": first.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "3"}]}]
    call = same.choices[0].message
    second = ask(client, more)
    again = ask_chat(chats, [*QUESTION, call.model_dump(include={"role", "content", "tool_calls"}),
                             {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "3"}])
    assert second.prompt_token_ids == again.prompt_token_ids
    assert second.token_ids == again.choices[0].token_ids
    assert client.messages.count_tokens(model="tiny", messages=more, tools=[ADD]).input_tokens == len(
        second.prompt_token_ids)
    root = str(chats.base_url).removesuffix("v1/")
    asked = {"messages": QUESTION, "tools": TOOLS}
    assert chats.post(root + "tokenize", cast_to=dict, body=asked)["tokens"] == first.prompt_token_ids


def test_a_stream_adds_up_to_the_whole(client):
    whole = ask(client, QUESTION)
    with client.messages.stream(model="tiny", messages=QUESTION, tools=[ADD], max_tokens=200,
                                extra_body={"temperature": 0, **IDS}) as stream:
        events = list(stream)
        final = stream.get_final_message()
    assert "".join(event.text for event in events if event.type == "text") == "Adding."
    assert [block.model_dump(exclude={"id"}) for block in final.content] == [
        block.model_dump(exclude={"id"}) for block in whole.content]
    assert (final.stop_reason, final.usage) == (whole.stop_reason, whole.usage)
    assert final.prompt_token_ids == whole.prompt_token_ids
    last, = [event for event in events if event.type == "message_delta"]
    assert last.token_ids == whole.token_ids


def test_drawn_texts_are_those_of_a_chat(client, chats):
    """By seed, at temperature 1, with log-probs, a system text and stop sequences."""
    for seed in range(4):
        more = {"seed": seed, "logprobs": True, "min_tokens": 3, **IDS}
        message = client.messages.create(model="tiny", system="be brief", max_tokens=30, extra_body=more,
                                         messages=[{"role": "user", "content": "tell"}], stop_sequences=["e"])
        chat = chats.chat.completions.create(
            model="tiny", max_tokens=30, stop=["e"], extra_body=more,
            messages=[{"role": "system", "content": "be brief"}, {"role": "user", "content": "tell"}])
        choice = chat.choices[0]
        assert message.prompt_token_ids == chat.prompt_token_ids
        assert message.token_ids == choice.token_ids
        assert [one["logprob"] for one in message.logprobs["content"]] == [
            one.logprob for one in choice.logprobs.content]
        assert "".join(block.text for block in message.content) == choice.message.content
        expected = "max_tokens" if choice.finish_reason == "length" else (
            "stop_sequence" if choice.stop_reason else "end_turn")
        assert (message.stop_reason, message.stop_sequence) == (expected, choice.stop_reason)


def test_the_client_sees_anthropics_errors(client, address):
    def wrong(error, status, type_, says, **more):
        with pytest.raises(error) as raised:
            ask(client, QUESTION, **more)
        assert raised.value.status_code == status
        body = raised.value.body
        assert body["type"] == "error" and body["error"]["type"] == type_ and says in body["error"]["message"]

    bad = anthropic.BadRequestError
    wrong(bad, 400, "invalid_request_error", "max_tokens", max_tokens=0)
    wrong(bad, 400, "invalid_request_error", "tool_choice", tool_choice={"type": "tool", "name": "sub"})
    wrong(bad, 400, "invalid_request_error", "thinking", thinking={"type": "enabled", "budget_tokens": 2000})
    wrong(bad, 400, "invalid_request_error", "context holds", max_tokens=5000)
    wrong(anthropic.NotFoundError, 404, "not_found_error", "no model 'claude'", model="claude")
    wrong(anthropic.RequestTooLargeError, 413, "request_too_large", "too large", system="x" * (17 << 20))
    stranger = anthropic.Anthropic(base_url=address, api_key="wrong", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError) as raised:
        ask(stranger, QUESTION)
    assert raised.value.body["error"]["type"] == "authentication_error"
    bearer = anthropic.Anthropic(base_url=address, auth_token=KEY, api_key=None, max_retries=0)
    assert ask(bearer, QUESTION).token_ids == ask(client, QUESTION).token_ids
    with httpx.Client(base_url=address, headers={"x-api-key": KEY}) as web:
        assert web.get("/v1/messages").json()["error"]["type"] == "invalid_request_error"
        assert web.post("/v1/messages/batches", json={}).json()["error"]["type"] == "not_found_error"
        assert web.post("/v1/chat/completions", json={}).status_code == 401, "a header of Anthropic's paths alone"
        body = web.post("/v1/messages", content=b"{").json()
        assert body == {"type": "error", "error": {"type": "invalid_request_error",
                                                   "message": body["error"]["message"]}}
        assert "JSON" in body["error"]["message"]


def test_a_stream_is_named_events(address):
    """As Anthropic's documentation shows them; clients of other languages read the names."""
    asked = {"model": "tiny", "max_tokens": 200, "messages": QUESTION, "tools": [ADD], "temperature": 0,
             "stream": True}
    with httpx.Client(base_url=address, headers={"x-api-key": KEY, "anthropic-version": "2023-06-01"}) as web:
        answer = web.post("/v1/messages", json=asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [part.split("\n") for part in answer.text.strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in events]
    parsed = [json.loads(data.removeprefix("data: ")) for _, data in events]
    assert names == [event["type"] for event in parsed]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    assert [event["index"] for event in parsed if event["type"] == "content_block_start"] == [0, 1]
    assert "[DONE]" not in answer.text


def test_the_package_renderers_generates(folder, address, chats):
    """renderers.client of verifiers and prime-rl: rendered there, sampled here, ids and log-probs back."""
    same = ask_chat(chats, QUESTION, logprobs=True)
    renderer = create_renderer(AutoTokenizer.from_pretrained(folder), DefaultRendererConfig(tool_parser="qwen3"))

    async def two_turns():
        async with openai.AsyncOpenAI(base_url=address + "/v1", api_key=KEY, max_retries=0) as asking:
            given = dict(client=asking, renderer=renderer, model="tiny", tools=TOOLS, cache_salt="a", priority=1,
                         extra_headers={"X-Session-ID": "s"}, sampling_params={"temperature": 0, "max_tokens": 200})
            first = await generate(messages=QUESTION, **given)
            ids = first["prompt_ids"] + first["completion_ids"] + list(b"\nuser: so?\nassistant: ")
            second = await generate(messages=[], prompt_ids=ids, **{**given, "sampling_params": {
                "temperature": 0.7, "seed": 3, "max_tokens": 5, "ignore_eos": True}})
            with pytest.raises(OverlongPromptError) as long:
                await generate(messages=[], prompt_ids=[65] * 1025, **given)
            return first, second, long.value

    first, second, long = asyncio.run(two_turns())
    assert first["prompt_ids"] == same.prompt_token_ids and first["completion_ids"] == same.choices[0].token_ids
    assert first["completion_logprobs"] == [one.logprob for one in same.choices[0].logprobs.content]
    assert first["content"] == SAID and first["finish_reason"] == "stop" and first["request_id"]
    assert first["usage"] == {"prompt_tokens": len(first["prompt_ids"]), "completion_tokens": len(SAID) + 1,
                              "total_tokens": len(first["prompt_ids"]) + len(SAID) + 1}
    assert len(second["completion_ids"]) == 5 == len(second["completion_logprobs"])
    assert second["finish_reason"] == "length"
    assert (long.prompt_len, long.max_prompt_len) == (1025, 1024), "it knows the context from /v1/models"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    path = tmp_path_factory.mktemp("ca") / "ca"
    subprocess.run([BUILD / "troupe", "ca", "init", "--out", path, "--hosts", "127.0.0.1"], check=True)
    return path


def test_https_with_stock_clients(folder, certificates):
    """Whole and streamed, with the server's certificate checked; who speaks no TLS is told so."""
    files = ["--ssl-certfile", certificates / "node.crt", "--ssl-keyfile", certificates / "node.key"]
    trust = ssl.create_default_context(cafile=certificates / "ca.crt")
    with serve(folder, *files) as url, httpx.Client(verify=trust) as web:
        assert url.startswith("https://")
        asked = dict(api_key="none", max_retries=0, timeout=PATIENCE_S)
        messages = anthropic.Anthropic(base_url=url, http_client=anthropic.DefaultHttpxClient(verify=trust), **asked)
        chats = openai.OpenAI(base_url=url + "/v1", http_client=openai.DefaultHttpxClient(verify=trust), **asked)
        for _ in range(3):
            assert ask(messages, QUESTION).token_ids == ask_chat(chats, QUESTION).choices[0].token_ids
            assert "".join(chunk.choices[0].delta.content or "" for chunk in ask_chat(
                chats, QUESTION, stream=True)) == "Adding."
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(url + "/health")
        plain = httpx.get(url.replace("https", "http") + "/health")
        assert plain.status_code == 400 and "https://" in plain.json()["error"]["message"]
        # A client that goes away: its samples end.
        with messages.messages.stream(model="tiny", max_tokens=1000, messages=[{"role": "user", "content": "x"}],
                                      extra_body={"ignore_eos": True}) as stream:
            next(iter(stream))
        idle = 'vllm:num_requests_running{model_name="tiny",engine="0"} 0\n'
        wait_for(lambda: idle in web.get(url + "/metrics").text)


def test_bad_files_of_https_are_refused_before_the_model_is_loaded(folder, certificates):
    def said(*flags):
        words = [BUILD / "troupe", "serve", "--model", folder, "--port", "0", *flags]
        ended = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        assert ended.returncode == 2
        return ended.stderr

    certificate, key = certificates / "node.crt", certificates / "node.key"
    assert "--ssl-certfile stands alone" in said("--ssl-certfile", certificate)
    assert "--ssl-keyfile stands alone" in said("--ssl-keyfile", key)
    assert "cannot read the certificate" in said("--ssl-certfile", "none.crt", "--ssl-keyfile", key)
    assert "is not that of the certificate" in said("--ssl-certfile", certificate, "--ssl-keyfile",
                                                    certificates / "ca.key")
    assert "--ssl-certfile and --ssl-keyfile" in said("--host", "0.0.0.0")


def test_a_key_is_held_to_its_limits(folder, tmp_path):
    """Counts that come back after minutes, so that the time a test takes does not matter."""
    keys = tmp_path / "keys"
    keys.write_text("# of the test\nfew name=few requests_per_minute=3\nfree control\nlong name=long tokens_per_minute=20\n"
                    "one name=one requests=1\n")
    with serve(folder, "--api-key-file", keys) as url:
        def asking(key):
            return anthropic.Anthropic(base_url=url, api_key=key, max_retries=0, timeout=PATIENCE_S)

        def refused(client, says):
            with pytest.raises(anthropic.RateLimitError) as raised:
                ask(client, QUESTION)
            error = raised.value
            assert error.body["error"]["type"] == "rate_limit_error" and says in error.body["error"]["message"]
            assert int(error.response.headers["retry-after"]) >= 1

        few = asking("few")
        answered = 0
        with pytest.raises(anthropic.RateLimitError):
            while answered < 60:  # a machine may be slow enough that one comes back
                ask(few, QUESTION, max_tokens=1)
                answered += 1
        assert 3 <= answered < 60
        chats = openai.OpenAI(base_url=url + "/v1", api_key="few", max_retries=0)
        with pytest.raises(openai.RateLimitError) as raised:
            for _ in range(60):
                ask_chat(chats, QUESTION)
        assert raised.value.code == "rate_limit_exceeded"
        for _ in range(5):
            ask(asking("free"), QUESTION, max_tokens=1)
        ask(asking("long"), QUESTION)
        refused(asking("long"), "'long' has used its 20 tokens a minute")
        one = asking("one")
        control = httpx.Client(base_url=url, headers={"Authorization": "Bearer free"})
        with concurrent.futures.ThreadPoolExecutor() as pool:
            control.post("/pause?mode=keep").raise_for_status()  # the first stays under way
            first = pool.submit(ask, one, QUESTION, max_tokens=1)
            wait_for(lambda: 'requests_running{model_name="tiny",engine="0",key="one"} 1\n' in control.get(
                "/metrics").text)
            refused(asking("one"), "'one' has 1 requests under way")
            control.post("/resume").raise_for_status()
            assert first.result().usage.output_tokens == 1
        ask(one, QUESTION, max_tokens=1)
        page = httpx.get(url + "/metrics").text
        assert 'troupe_key_requests_total{model_name="tiny",engine="0",key="key-2"} 5\n' in page
        assert 'troupe_key_refused_total{model_name="tiny",engine="0",key="one"} 1\n' in page
        assert 'troupe_key_generation_tokens_total{model_name="tiny",engine="0",key="key-2"} 5\n' in page


def test_what_no_reader_takes_is_an_error_of_the_dialect(address):
    """Over the wire: bytes that are no UTF-8, deep values, 10,000 messages."""
    with httpx.Client(base_url=address, headers={"x-api-key": KEY, "Authorization": f"Bearer {KEY}"},
                      timeout=PATIENCE_S) as web:
        many = [{"role": "user", "content": "a"}] * 10_000
        for path, more in (("/v1/chat/completions", {}), ("/v1/messages", {"max_tokens": 5})):
            for body in (b'{"messages":"\xff"}', b'{"messages":' + b"[" * 1_000_000, b"\x00", b"",
                         json.dumps({"messages": many, **more}).encode(),
                         json.dumps({"messages": many[:1], "temperature": 1e300, **more}).encode()):
                answer = web.post(path, content=body)
                error = answer.json()["error"]
                assert answer.status_code == 400 and error["type"] == "invalid_request_error", error
                assert ("type" in answer.json()) == (path == "/v1/messages")
                assert len(error["message"]) < 400
