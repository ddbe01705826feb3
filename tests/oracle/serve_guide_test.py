"""Guided output of `troupe serve` through the stock `openai` package, on a tiny Llama with random weights: what
comes back parses and validates by the package jsonschema, full-matches by Python's re, and calls tools in every
format with arguments of the tool's schema, whole and streamed.
"""

import concurrent.futures
import json
import random
import re
import urllib.request

import jsonschema
import openai
import pytest

from byte_model import END
from random_model import make_model
from served import PATIENCE_S, serve
from taught_model import TEMPLATE

QUESTION = [{"role": "user", "content": "1+2?"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve_guide") / "tiny"
    make_model(path, scale=0.05, template=TEMPLATE, max_position_embeddings=4096)
    return path


def client_of(url):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def client(folder):
    with serve(folder) as url:
        yield client_of(url)


def random_schema(rng, depth=0):
    """A schema whose texts all have an end that a random model finds."""
    kind = rng.choice(["string", "integer", "boolean", "null", "enum", "const", "pattern", "anyOf"]
                      + ["object", "array"] * (3 if depth < 3 else 0))
    if kind == "string":
        return {"type": "string", "minLength": rng.randrange(3), "maxLength": rng.randrange(3, 12)}
    if kind == "integer":
        low = rng.randrange(-50, 50)
        return {"type": "integer", "minimum": low, "maximum": low + rng.randrange(200)}
    if kind in ("boolean", "null"):
        return {"type": kind}
    if kind == "enum":
        return {"enum": rng.sample(["a", "b\"c", "\u00e9", 7, -1.5, None, True, [1, {"x": 2}]], rng.randrange(1, 5))}
    if kind == "const":
        return {"const": rng.choice(["k", 3, {"z": [None]}])}
    if kind == "pattern":
        return {"type": "string", "pattern": rng.choice(["^[a-c]{2,5}$", "^(ab|c){1,4}d?$", "^[0-9]{3}-[0-9]{2}$"])}
    if kind == "anyOf":
        return {"anyOf": [random_schema(rng, depth + 1) for _ in range(rng.randrange(1, 4))]}
    if kind == "array":
        return {"type": "array", "items": random_schema(rng, depth + 1), "minItems": rng.randrange(2),
                "maxItems": rng.randrange(2, 4)}
    names = rng.sample(["a", "b", "name", "x y", "\u00fc"], rng.randrange(1, 5))
    return {"type": "object", "properties": {name: random_schema(rng, depth + 1) for name in names},
            "required": rng.sample(names, rng.randrange(len(names) + 1)), "additionalProperties": False}


def chat(client, stream=False, **more):
    return client.chat.completions.create(model="tiny", messages=QUESTION, max_tokens=3000, stream=stream, **more)


def test_answers_validate_against_random_schemas(client):
    rng = random.Random(11)
    for seed in range(50):
        schema = random_schema(rng)
        wanted = {"type": "json_schema", "json_schema": {"name": "wanted", "strict": True, "schema": schema}}
        choice = chat(client, seed=seed, response_format=wanted).choices[0]
        assert choice.finish_reason == "stop" and choice.stop_reason is None, (schema, choice)
        jsonschema.validate(json.loads(choice.message.content), schema)


def test_the_forms_of_a_schema_give_one_answer(client):
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}, "s": {"enum": ["x", "y"]}},
              "required": ["n", "s"], "additionalProperties": False}
    texts = set()
    for more in ({"guided_json": schema}, {"guided_json": json.dumps(schema)},
                 {"structured_outputs": {"json": schema}},
                 {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}):
        answer = client.completions.create(model="tiny", prompt="a", max_tokens=2000, seed=4, extra_body=more)
        texts.add(answer.choices[0].text)
    answer = client.post("/../inference/v1/generate", cast_to=object, body={
        "token_ids": [97], "sampling_params": {"max_tokens": 2000, "seed": 4, "structured_outputs": {"json": schema}}})
    ids = answer["choices"][0]["token_ids"]
    assert ids[-1] == END
    texts.add(bytes(ids[:-1]).decode())
    text, = texts
    jsonschema.validate(json.loads(text), schema)
    whole = chat(client, seed=9, extra_body={"guided_json": schema}).choices[0].message.content
    parts = [c.choices[0].delta.content or "" for c in chat(client, stream=True, seed=9,
                                                            extra_body={"guided_json": schema})]
    assert "".join(parts) == whole


def test_json_object_is_an_object(client):
    # A random model writes long texts; what it wrote until its limit begins an object.
    text = client.completions.create(model="tiny", prompt="a", max_tokens=40, seed=1, temperature=0.7, extra_body={
        "response_format": {"type": "json_object"}}).choices[0].text
    assert text.lstrip().startswith("{")


REGEXES = [r"[a-f]{3,8}", r"(foo|ba[rz]){1,3}!", r"\d{1,3}(\.\d{1,3}){3}", r"[A-Z][a-z]{2,6} \d{2}",
           r"(\+|-)?[1-9][0-9]{0,4}", "\u00e9{2,3}x?", r"<(a|b)>[^<>]{0,5}</(a|b)>"]


def test_answers_match_their_regexes_choices_and_grammars(client):
    for seed, regex in enumerate(REGEXES * 3):
        got = client.completions.create(model="tiny", prompt="a", max_tokens=400, seed=seed,
                                        extra_body={"guided_regex": regex}).choices[0]
        assert got.finish_reason == "stop" and re.fullmatch(regex, got.text), (regex, got.text)
    choices = ["yes", "no \"never\"", "\u2713"]
    texts = {client.completions.create(model="tiny", prompt="a", max_tokens=40, seed=seed, extra_body={
        "guided_choice": choices}).choices[0].text for seed in range(12)}
    assert texts <= set(choices) and len(texts) > 1
    nested = client.completions.create(model="tiny", prompt="a", max_tokens=900, seed=2, n=4, extra_body={
        "guided_grammar": 'start: "(" start ")" | /[a-c]/'})
    for choice in nested.choices:
        depth = choice.text.count("(")
        assert re.fullmatch(r"\({%d}[a-c]\){%d}" % (depth, depth), choice.text)


def guided_requests(rng, count):
    """Requests of all kinds of guides, and some without, each with its own seed and temperature."""
    for seed in range(count):
        kind = rng.choice(["json", "regex", "choice", "grammar", "none"])
        guide = {"json": {"guided_json": random_schema(rng)}, "regex": {"guided_regex": rng.choice(REGEXES)},
                 "choice": {"guided_choice": ["yes", "no", "perhaps"]}, "none": {},
                 "grammar": {"guided_grammar": 'start: "(" start ")" | /[a-c]/'}}[kind]
        yield dict(model="tiny", prompt=rng.choice(["a", "bc" * 40, "d" * 90]), seed=seed, logprobs=1,
                   max_tokens=rng.choice([30, 200, 400]), temperature=rng.choice([0, 0.7, 1]), extra_body=guide)


def test_under_load_each_answer_is_that_of_the_request_alone(folder, client):
    """Forty at a time, in so little memory that samples are set back again and again."""
    asked = list(guided_requests(random.Random(5), 200))
    alone = [client.completions.create(**one).choices for one in asked]
    with serve(folder, "--kv-cache-memory-bytes", str(3 << 18), "--max-model-len", "500", "--max-num-seqs", "32") as url:
        other = client_of(url)
        for _ in range(5):  # on a busy machine a round may be too slow to crowd the memory
            with concurrent.futures.ThreadPoolExecutor(40) as crowd:
                together = list(crowd.map(lambda one: other.completions.create(**one).choices, asked))
            for one, got, wanted in zip(asked, together, alone, strict=True):
                assert got == wanted, one
            metrics = urllib.request.urlopen(url + "/metrics").read().decode()
            number = {line.split("{")[0]: float(line.rsplit(" ", 1)[1])
                      for line in metrics.splitlines() if line[:1] != "#"}
            if number["vllm:num_preemptions_total"] > 0:
                break
    assert number["vllm:num_preemptions_total"] > 0
    assert number["vllm:num_requests_running"] == number["vllm:num_requests_waiting"] == 0


TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {
             "type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 999},
                                              "b": {"type": "integer", "minimum": 0, "maximum": 999}},
             "required": ["a", "b"], "additionalProperties": False}}},
         {"type": "function", "function": {"name": "look_up", "parameters": {
             "type": "object", "properties": {"key": {"type": "string", "maxLength": 6},
                                              "deep": {"type": "array", "maxItems": 2, "items": {"type": "boolean"}}},
             "required": ["key"], "additionalProperties": False}}}]
SCHEMAS = {t["function"]["name"]: t["function"]["parameters"] for t in TOOLS}


@pytest.mark.parametrize("parser", ["hermes", "llama3_json", "mistral", "json"])
def test_forced_calls_validate_in_every_format(folder, parser):
    with serve(folder, "--tool-call-parser", parser) as url:
        client = client_of(url)
        called = set()
        for seed in range(8):
            message = chat(client, seed=seed, tools=TOOLS, tool_choice="required").choices[0]
            assert message.finish_reason == "tool_calls" and not message.message.content
            for call in message.message.tool_calls:
                jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
                called.add(call.function.name)
        assert called == set(SCHEMAS)
        only = {"type": "function", "function": {"name": "look_up"}}
        for seed in range(4):
            given = dict(seed=seed, tools=TOOLS, tool_choice=only, parallel_tool_calls=False)
            call, = chat(client, **given).choices[0].message.tool_calls
            assert call.function.name == "look_up"
            jsonschema.validate(json.loads(call.function.arguments), SCHEMAS["look_up"])
            parts = [p for c in chat(client, stream=True, **given) for p in c.choices[0].delta.tool_calls or []]
            assert [p.function.name for p in parts if p.function.name] == ["look_up"]
            assert "".join(p.function.arguments or "" for p in parts) == call.function.arguments


def test_what_cannot_be_guided_is_refused(client):
    for more, word in (({"guided_regex": "a("}, "guided_regex"), ({"guided_json": {"not": {}}}, "guided_json"),
                       ({"guided_regex": "a" * 70000}, "65536"), ({"guided_grammar": "start: start"}, "no text"),
                       ({"guided_json": {"allOf": [{"anyOf": [{"properties": {f"{c}{i}": {"type": "string"}}}
                                                              for c in "ab"]} for i in range(16)]}}, "too large")):
        with pytest.raises(openai.BadRequestError) as refused:
            client.completions.create(model="tiny", prompt="a", extra_body=more)
        assert word in refused.value.message or word == refused.value.param, refused.value.message


def test_without_the_library_the_answer_names_the_command(folder, monkeypatch):
    monkeypatch.setenv("TROUPE_GUIDE_LIBRARY", str(folder / "none.so"))
    with serve(folder) as url:
        client = client_of(url)
        with pytest.raises(openai.APIStatusError) as refused:
            chat(client, response_format={"type": "json_object"})
        assert "./dev build guide" in refused.value.message and refused.value.param == "response_format"
        assert client.completions.create(model="tiny", prompt="a", max_tokens=2).choices[0].finish_reason
