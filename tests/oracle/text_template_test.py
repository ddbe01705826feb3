"""Chat templates against transformers' apply_chat_template (jinja2): equal to the byte.

Source of truth: PreTrainedTokenizerFast.apply_chat_template of the oracle environment.
Tolerance: none. Where jinja2 raises, we must answer with an error.
"""

import itertools
import json
import os
import pathlib
import time

import pytest
import trl
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

import text_snippets
from text_client import Refused, TextDriver

TEMPLATES = pathlib.Path(__file__).parent.parent / "data" / "templates"

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather",
        "description": "Weather <now> for a \"city\" & more\nsecond line é",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "Name – e.g. Zürich"},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            "days": {"type": ["integer", "null"]},
            "where": {"type": "array", "items": {"type": "object", "properties": {
                "lat": {"type": "number"}, "lon": {"type": "number"}}, "required": ["lat"]}}},
            "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "stop", "description": "",
        "parameters": {"type": "object", "properties": {}, "required": []}}},
]
USER = {"role": "user", "content": "  What is 2+2?\n"}
ASSISTANT = {"role": "assistant", "content": "4  "}
SYSTEM = {"role": "system", "content": "Answer briefly. "}
CALLS = [{"id": "abcdefghi", "type": "function", "function": {
    "name": "get_weather", "arguments": {"city": "Zürich", "days": 2, "ratio": 0.5, "ok": True}}}]
DIALOGUES = {
    "one_user": [USER],
    "system": [SYSTEM, USER],
    "turns": [USER, ASSISTANT, {"role": "user", "content": "And 3+3?"}],
    "system_turns": [SYSTEM, USER, ASSISTANT, {"role": "user", "content": "And?"}, ASSISTANT],
    "unicode": [{"role": "user", "content": "日本語 🙂 \u202e é\u0301 \x1f<b>&'\"\\ {{ n }} {% if %}"}],
    "empty": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}],
    "wrong_order": [ASSISTANT, USER, USER],
    "two_systems": [SYSTEM, USER, SYSTEM],
    "other_role": [USER, {"role": "critic", "content": "no"}],
    "tool_calls": [USER, {"role": "assistant", "content": None, "tool_calls": CALLS},
                   {"role": "tool", "content": "{\"t\": 3}", "tool_call_id": "abcdefghi"},
                   {"role": "tool", "content": "again", "tool_call_id": "abcdefghi"},
                   ASSISTANT],
    "two_calls": [USER, {"role": "assistant", "content": "Let me see.", "tool_calls": CALLS * 2}],
    "reasoning": [USER, {"role": "assistant", "content": "4", "reasoning": "2 and 2"},
                  {"role": "user", "content": "sure?"},
                  {"role": "assistant", "content": "<think>\nhm\n</think>\n\nyes"}],
    "parts": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " look "}]}],
    "extra_fields": [{"name": "ann", "role": "user", "content": "x", "weight": 1.0}],
}


@pytest.fixture(scope="module")
def driver():
    running = TextDriver()
    yield running
    running.close()


@pytest.fixture(scope="module")
def tokenizer():
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>", eos_token="</s>")


def theirs(tokenizer, template, messages, **kwargs):
    """What transformers prints, or the exception."""
    try:
        return tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, **kwargs)
    except Exception as error:  # jinja2, TypeError, ValueError: whatever the template provokes
        return error


def ours(driver, template, messages, **request):
    try:
        return driver.ask(op="render", template=template, messages=messages, **request)
    except Refused as error:
        return error


def check(expected, got, what):
    if isinstance(expected, Exception):
        assert isinstance(got, Refused), f"{what}: they fail ({expected!r}), we print {got!r}"
        assert got.code != "internal", f"{what}: {got}"
    else:
        assert got == expected, f"{what}: {got!r}"


VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}
STYLES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dialogue", DIALOGUES)
def test_style_of_a_published_model(driver, tokenizer, style, dialogue):
    template = (TEMPLATES / f"{style}.jinja").read_text()
    messages = DIALOGUES[dialogue]
    for prompt, tools in itertools.product((False, True), (None, TOOLS)):
        extra = {"date_string": "26 Jul 2024", "enable_thinking": prompt}
        expected = theirs(tokenizer, template, messages, tools=tools,
                          add_generation_prompt=prompt, **extra)
        request = {"tools": tools} if tools else {}
        got = ours(driver, template, messages, add_generation_prompt=prompt,
                   variables=VARIABLES | extra, **request)
        check(expected, got, f"{style}/{dialogue}/prompt={prompt}/tools={bool(tools)}")
        if isinstance(expected, Exception) and type(expected).__name__ == "TemplateError":
            assert str(expected) in str(got)


NUMBERS = ["0", "-0", "0.0", "-0.0", "0e0", "0E+0", "1", "-1", "1.0", "1.00", "1e0", "1E5", "1e5", "1e+5", "1e-5",
           "1.5e-05", "0.10", "0.1", "0.1234567890123456789", "100000.0", "1e22", "1e+22", "1e23",
           "123456789012345678901234567890", "-123456789012345678901234567890", "9007199254740993",
           "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
           "18446744073709551615", "18446744073709551616", "340282366920938463463374607431768211456", "1e308",
           "1.7976931348623157e308", "4.9e-324", "1e-400", "3.141592653589793238462643383279", "2.50",
           "1234567.8900"]


@pytest.mark.parametrize("number", NUMBERS)
def test_spelling_of_a_number(driver, tokenizer, number):
    """In tools, arguments and variables, as transformers renders what Python's json reads."""
    tools = json.dumps(TOOLS[:1])[:-2] + f', "maximum": {number}, "all": [{number}, "{number}"]}}]'
    call = '{"type": "function", "function": {"name": "f", "arguments": {"a": %s, "b": {"c": [%s]}}}}'
    messages = ('[{"role": "user", "content": "q %s"}, {"role": "assistant", "content": "", "tool_calls": [%s]}, '
                '{"role": "tool", "content": "1"}]') % (number, call % (number, number))
    extra = {"date_string": "26 Jul 2024", "enable_thinking": False}
    variables = '{"bos_token": "<s>", "eos_token": "</s>", %s, "n": %s}' % (json.dumps(extra)[1:-1], number)
    own = ("{{ n }} {{ n | tojson }} {{ tools | tojson }} {% for m in messages %}{{ m }}"
           "{{ m.tool_calls | tojson if m.tool_calls }}{% endfor %}")
    for template in [own] + [(TEMPLATES / f"{style}.jinja").read_text() for style in STYLES]:
        expected = theirs(tokenizer, template, json.loads(messages), tools=json.loads(tools), n=json.loads(number),
                          **extra)
        got = ours(driver, template, messages, tools=tools, variables=variables)
        check(expected, got, number)
        if template is own:
            assert isinstance(expected, str), expected


PUBLISHED = sorted(pathlib.Path(trl.__file__).parent.glob("chat_templates/*.jinja"))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_template_that_trl_ships(driver, tokenizer, path):
    """Templates of published models, as the trl package of the oracle environment holds them."""
    template = path.read_text()
    for name, messages in DIALOGUES.items():
        for prompt, tools in ((False, None), (True, TOOLS)):
            extra = {"date_string": "26 Jul 2024", "enable_thinking": prompt}
            expected = theirs(tokenizer, template, messages, tools=tools,
                              add_generation_prompt=prompt, **extra)
            request = {"tools": tools} if tools else {}
            got = ours(driver, template, messages, add_generation_prompt=prompt,
                       variables=VARIABLES | extra, now=int(time.time()), **request)
            check(expected, got, f"{path.stem}/{name}/prompt={prompt}")


def test_trl_ships_templates():
    assert len(PUBLISHED) >= 30


def test_most_renderings_of_styles_succeed(tokenizer):
    """The comparison above must not be one of errors with errors."""
    printed = 0
    for style in STYLES:
        template = (TEMPLATES / f"{style}.jinja").read_text()
        printed += sum(isinstance(theirs(tokenizer, template, messages, tools=TOOLS), str)
                       for messages in DIALOGUES.values())
    assert printed >= 0.6 * len(STYLES) * len(DIALOGUES)
    assert len(STYLES) >= 6


@pytest.mark.parametrize("place", range(len(text_snippets.SNIPPETS + text_snippets.BLOCKS)))
def test_point_of_the_language(driver, tokenizer, place):
    snippet = (text_snippets.SNIPPETS + text_snippets.BLOCKS)[place]
    context = text_snippets.CONTEXT
    expected = theirs(tokenizer, snippet, [USER], **context)
    got = ours(driver, snippet, [USER], variables=VARIABLES | context)
    check(expected, got, snippet)


def test_most_snippets_print(tokenizer):
    printed = [s for s in text_snippets.SNIPPETS
               if isinstance(theirs(tokenizer, s, [USER], **text_snippets.CONTEXT), str)]
    assert len(printed) >= 90


def test_strftime_now_formats_the_local_time(driver):
    now = 1_700_000_000
    template = "{{ strftime_now('%Y-%m-%d %H:%M:%S %A %d %b %j') }}"
    expected = time.strftime("%Y-%m-%d %H:%M:%S %A %d %b %j", time.localtime(now))
    assert ours(driver, template, [USER], now=now) == expected


def model_folder():
    folder = os.environ.get("TROUPE_TEST_MODEL", "")
    if not os.path.exists(os.path.join(folder, "tokenizer_config.json")):
        pytest.skip(f"LOUD SKIP: the real small model is not in '{folder}'; run ./dev demo once")
    return folder


@pytest.mark.parametrize("dialogue", ["one_user", "system", "turns", "system_turns", "unicode"])
def test_template_of_the_real_small_model(driver, dialogue):
    folder = model_folder()
    config = json.load(open(os.path.join(folder, "tokenizer_config.json")))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(folder, "tokenizer.json"),
        **{key: config[key] for key in ("bos_token", "eos_token", "pad_token", "unk_token")
           if config.get(key)})
    for prompt in (False, True):
        expected = theirs(tokenizer, config["chat_template"], DIALOGUES[dialogue],
                          add_generation_prompt=prompt)
        assert isinstance(expected, str)
        got = driver.ask(op="render", folder=folder, messages=DIALOGUES[dialogue],
                         add_generation_prompt=prompt)
        assert got == expected
