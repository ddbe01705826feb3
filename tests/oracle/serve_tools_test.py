"""Tools of `troupe serve` through the stock `openai` package: the prompts are those of transformers'
apply_chat_template with `tools`, and a tiny Llama that torch has taught to call a tool calls it, whole and
streamed; the tool's answer goes back and the prompt of the next turn holds the call as the template writes it.
"""

import json

import openai
import pytest

from byte_model import END
from served import PATIENCE_S, serve
from taught_model import QUESTION, SAID, TOOLS, make_model, rendered


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve_tools") / "tiny"
    make_model(path)
    return path


@pytest.fixture(scope="module")
def client(folder):
    with serve(folder) as url:
        yield openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE_S)


def ask(client, messages, **more):
    return client.chat.completions.create(model="tiny", messages=messages, tools=TOOLS, max_tokens=200,
                                          temperature=0, extra_body={"return_token_ids": True}, **more)


def test_a_call_and_the_turn_behind_it(client, folder):
    first = ask(client, QUESTION)
    assert first.prompt_token_ids == rendered(folder, QUESTION)
    choice = first.choices[0]
    assert bytes(choice.token_ids[:-1]).decode() == SAID and choice.token_ids[-1] == END
    assert choice.finish_reason == "tool_calls" and choice.message.content == "Adding."
    call, = choice.message.tool_calls
    assert call.type == "function" and call.function.name == "add"
    assert json.loads(call.function.arguments) == {"b": 2, "a": 1}
    # What an agent sends back, its arguments as text; templates want them as an object.
    answer = {"role": "tool", "tool_call_id": call.id, "content": "3"}
    second = ask(client, [*QUESTION, choice.message.model_dump(include={"role", "content", "tool_calls"}), answer])
    said = {"role": "assistant", "content": "Adding.", "tool_calls": [
        {"id": call.id, "type": "function", "function": {"name": "add", "arguments": {"b": 2, "a": 1}}}]}
    assert second.prompt_token_ids == rendered(folder, [*QUESTION, said, answer])


def test_a_streamed_call_is_the_same(client):
    whole = ask(client, QUESTION)
    content, calls, finish = "", {}, None
    for chunk in ask(client, QUESTION, stream=True):
        delta = chunk.choices[0].delta
        content += delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
        for part in delta.tool_calls or []:  # as OpenAI's examples put them together
            call = calls.setdefault(part.index, {"name": "", "arguments": ""})
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""
    assert content == "Adding." and finish == "tool_calls"
    function = whole.choices[0].message.tool_calls[0].function
    assert calls == {0: {"name": function.name, "arguments": function.arguments}}


def test_without_tools_the_text_stays(client):
    for more in ({"tool_choice": "none"}, {"tools": openai.omit}):
        given = {"model": "tiny", "messages": QUESTION, "tools": TOOLS, "temperature": 0, "max_tokens": 5, **more}
        answer = client.chat.completions.create(**given)
        assert answer.choices[0].message.tool_calls is None
        assert answer.choices[0].finish_reason == "length"
