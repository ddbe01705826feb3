"""`troupe serve` against the clients it is made for and the model it serves: the stock `openai`
package and lm-eval's `local-completions`, both unchanged, on a tiny Llama; texts, log-probs and
log-likelihoods are those that transformers computes from the same folder.
"""

import base64
import io
import json
import urllib.error
import urllib.request

import numpy
import openai
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, MixtralConfig, MixtralForCausalLM

from byte_model import END, byte_tokenizer
from random_model import make_model
from served import BUILD, PATIENCE_S, serve  # noqa: F401

KEY = "sesame"
TEMPLATE = ("{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "tiny"
    make_model(path, seed=3, scale=0.3, template=TEMPLATE)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def address(folder):
    with serve(folder, "--api-key", KEY) as url:
        yield url


@pytest.fixture(scope="module")
def client(address):
    return openai.OpenAI(base_url=address + "/v1", api_key=KEY, max_retries=0, timeout=PATIENCE_S)


def logprobs_of(model, ids):
    """[len(ids), vocabulary]: row i is the distribution of token i + 1."""
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].log_softmax(-1)


def greedy(model, ids, count):
    with torch.no_grad():
        out = model.generate(torch.tensor([ids]), max_new_tokens=count, min_new_tokens=count,
                             do_sample=False)
    return out[0, len(ids):].tolist()


def test_greedy_text_is_that_of_transformers(client, model, tokenizer):
    for prompt in ["2+2=", "Hello, ", "x"]:
        ids = tokenizer(prompt)["input_ids"]
        expected = greedy(model, ids, 40)
        # transformers forbids the end token for all 40; the server counts it as any other.
        answer = client.completions.create(model="tiny", prompt=prompt, max_tokens=40, temperature=0,
                                           logit_bias={str(END): -100})
        assert answer.choices[0].text == tokenizer.decode(expected)
        assert answer.choices[0].finish_reason == "length"
        assert answer.usage.prompt_tokens == len(ids) and answer.usage.completion_tokens == 40
        by_ids = client.completions.create(model="tiny", prompt=[ids], max_tokens=40, temperature=0,
                                           logit_bias={str(END): -100})
        assert by_ids.choices[0].text == answer.choices[0].text


def test_echoed_logprobs_are_those_of_transformers(client, model, tokenizer):
    ids = tokenizer("the quick brown fox")["input_ids"]
    answer = client.completions.create(model="tiny", prompt=[ids], max_tokens=5, temperature=0, echo=True,
                                       logprobs=3, extra_body={"ignore_eos": True})
    found = answer.choices[0].logprobs
    assert found.token_logprobs[0] is None and found.top_logprobs[0] is None
    assert found.tokens[:len(ids)] == [tokenizer.decode([i]) for i in ids]
    assert len(found.token_logprobs) == len(ids) + 5 == len(found.text_offset)
    table = logprobs_of(model, ids)
    for i in range(1, len(ids)):
        assert found.token_logprobs[i] == pytest.approx(table[i - 1, ids[i]].item(), abs=1e-4)
        best = table[i - 1].topk(3).values.tolist()
        assert sorted(found.top_logprobs[i].values(), reverse=True)[:3] == pytest.approx(best, abs=1e-4)
        assert found.tokens[i] in found.top_logprobs[i]
    alone = client.completions.create(model="tiny", prompt=[ids], max_tokens=0, temperature=0, echo=True,
                                      logprobs=3)
    assert alone.choices[0].text == "the quick brown fox"
    assert alone.choices[0].logprobs.token_logprobs == found.token_logprobs[:len(ids)]
    assert alone.usage.completion_tokens == 0


def test_logprobs_are_at_temperature_1_whatever_was_sampled(client, model, tokenizer):
    ids = tokenizer("a")["input_ids"]
    answer = client.completions.create(model="tiny", prompt="a", max_tokens=8, temperature=2.5, seed=7,
                                       top_p=0.7, logprobs=0, extra_body={"ignore_eos": True})
    # Byte tokens: what is not printable comes as U+FFFD, so the first token is found by its value.
    first = answer.choices[0].logprobs.token_logprobs[0]
    assert (logprobs_of(model, ids)[-1] - first).abs().min() < 1e-4
    again = client.completions.create(model="tiny", prompt="a", max_tokens=8, temperature=2.5, seed=7,
                                      top_p=0.7, logprobs=0, extra_body={"ignore_eos": True})
    assert again.choices[0].text == answer.choices[0].text
    assert again.choices[0].logprobs.token_logprobs == answer.choices[0].logprobs.token_logprobs


def test_chat_renders_the_models_template(client, model, tokenizer):
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "1+1?"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    answer = client.chat.completions.create(model="tiny", messages=messages, max_completion_tokens=20,
                                            temperature=0, logprobs=True, top_logprobs=2,
                                            logit_bias={str(END): -100})
    expected = greedy(model, ids, 20)
    assert answer.choices[0].message.content == tokenizer.decode(expected)
    assert answer.usage.prompt_tokens == len(ids)
    content = answer.choices[0].logprobs.content
    table = logprobs_of(model, ids + expected)
    for i, one in enumerate(content):
        assert one.logprob == pytest.approx(table[len(ids) - 1 + i, expected[i]].item(), abs=1e-4)
        assert len(one.top_logprobs) == 2
        assert one.top_logprobs[0].logprob == pytest.approx(table[len(ids) - 1 + i].max().item(), abs=1e-4)


def test_streams_add_up_to_the_whole(client):
    messages = [{"role": "user", "content": "tell"}]
    asked = dict(model="tiny", messages=messages, max_tokens=60, seed=11, n=2, logprobs=True,
                 top_logprobs=1, extra_body={"ignore_eos": True})
    whole = client.chat.completions.create(**asked)
    texts, logprobs, ends, usage = ["", ""], [[], []], [None, None], None
    for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            ends[choice.index] = choice.finish_reason or ends[choice.index]
            if choice.logprobs:
                logprobs[choice.index] += [one.logprob for one in choice.logprobs.content]
    assert texts == [choice.message.content for choice in whole.choices]
    assert logprobs == [[one.logprob for one in choice.logprobs.content] for choice in whole.choices]
    assert ends == ["length", "length"]
    assert usage == whole.usage and usage.completion_tokens == 120
    pieces = [c.choices[0].text for c in client.completions.create(
        model="tiny", prompt="tell", max_tokens=30, temperature=0, stream=True)]
    assert "".join(pieces) == client.completions.create(
        model="tiny", prompt="tell", max_tokens=30, temperature=0).choices[0].text


def test_ids_are_those_that_were_prompted_and_drawn(client, model, tokenizer):
    """return_token_ids, where vLLM has them. Their log-probs by transformers are those of the answer, which
    they would not be if a text were tokenised again."""
    messages = [{"role": "user", "content": "tell"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(text, add_special_tokens=False)["input_ids"]
    asked = dict(model="tiny", seed=5, max_tokens=30, n=2,
                 extra_body={"return_token_ids": True, "ignore_eos": True, "return_tokens_as_token_ids": True})
    chat = client.chat.completions.create(messages=messages, logprobs=True, **asked)
    completion = client.completions.create(prompt=[prompt], logprobs=0, **asked)
    assert chat.prompt_token_ids == prompt
    for a, b in zip(chat.choices, completion.choices):
        assert b.prompt_token_ids == prompt and a.token_ids == b.token_ids and len(a.token_ids) == 30
        names = [f"token_id:{i}" for i in a.token_ids]
        assert [one.token for one in a.logprobs.content] == names == b.logprobs.tokens
        found = [one.logprob for one in a.logprobs.content]
        assert found == b.logprobs.token_logprobs
        table = logprobs_of(model, prompt + a.token_ids)
        for i, one in enumerate(found):
            assert one == pytest.approx(table[len(prompt) - 1 + i, a.token_ids[i]].item(), abs=1e-4)
    assert chat.choices[0].token_ids != chat.choices[1].token_ids
    streamed, prompts = [[], []], []
    for chunk in client.chat.completions.create(messages=messages, stream=True, **asked):
        prompts += [chunk.prompt_token_ids] if "prompt_token_ids" in chunk.model_extra else []
        for choice in chunk.choices:
            streamed[choice.index] += (choice.model_extra or {}).get("token_ids", [])
    assert streamed == [choice.token_ids for choice in chat.choices]
    assert prompts == [prompt, prompt], "once for each choice"


def test_tokens_come_and_go_as_the_package_renderers_wants_them(client, address, model):
    """POST /inference/v1/generate, as renderers 0.1.12 sends it and reads the answer (client.py)."""
    ids = [50, 43, 50, 61]
    body = {"model": "tiny", "token_ids": ids, "cache_salt": "a", "priority": 2, "sampling_params": {
        "stop_token_ids": [END], "logprobs": 1, "skip_special_tokens": False, "temperature": 0, "max_tokens": 12}}
    got = client.post(address + "/inference/v1/generate", cast_to=dict, body=body)
    assert got["request_id"]
    choice, = got["choices"]
    drawn = choice["token_ids"]
    expected = greedy(model, ids, 12)
    assert drawn == expected[:len(drawn)] and (len(drawn) == 12 or drawn[-1] == END)
    assert choice["finish_reason"] == ("stop" if drawn[-1] == END else "length")
    table = logprobs_of(model, ids + drawn)
    assert len(choice["logprobs"]["content"]) == len(drawn)
    for i, entry in enumerate(choice["logprobs"]["content"]):
        assert entry["token"] == f"token_id:{drawn[i]}"
        assert entry["logprob"] == pytest.approx(table[len(ids) - 1 + i, drawn[i]].item(), abs=1e-4)
    card, = client.get("/models", cast_to=dict)["data"]
    assert card["id"] == "tiny" and card["max_model_len"] == 512
    with pytest.raises(openai.BadRequestError) as bad:
        client.post(address + "/inference/v1/generate", cast_to=dict, body={"token_ids": [1, 999]})
    assert "outside the vocabulary" in str(bad.value)


def test_vllms_clients_find_the_server(address):
    """What TRL 1.16 asks a vLLM server before it starts (generation/vllm_client.py)."""
    def get(path, **headers):
        with urllib.request.urlopen(urllib.request.Request(address + path, headers=headers)) as answer:
            return json.load(answer)

    config = get("/server_info?config_format=json", Authorization=f"Bearer {KEY}")["vllm_config"]
    assert config["model_config"]["logprobs_mode"] == "raw_logprobs"
    assert config["weight_transfer_config"] is None
    assert get("/get_world_size", Authorization=f"Bearer {KEY}") == {"world_size": 1}
    with pytest.raises(urllib.error.HTTPError) as refused:
        get("/server_info")
    assert refused.value.code == 401


def test_the_client_sees_openais_errors(client, address):
    with pytest.raises(openai.BadRequestError) as bad:
        client.completions.create(model="tiny", prompt="a", temperature=-1)
    assert bad.value.param == "temperature" and bad.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError) as missing:
        client.completions.create(model="gpt-4", prompt="a")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as long:
        client.completions.create(model="tiny", prompt="a" * 600)
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=address + "/v1", api_key="wrong", max_retries=0).models.list()
    assert [one.id for one in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").max_model_len == 512


def test_routed_experts_are_those_of_transformers(tmp_path):
    torch.manual_seed(4)
    config = MixtralConfig(vocab_size=257, hidden_size=64, intermediate_size=48, num_hidden_layers=3,
                           num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
                           num_local_experts=5, num_experts_per_tok=2, eos_token_id=END, bos_token_id=None,
                           pad_token_id=END, tie_word_embeddings=False)
    model = MixtralForCausalLM(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, 0.3)
    model.save_pretrained(tmp_path)
    byte_tokenizer(tmp_path)
    ids = list(b"which of them?")
    with serve(tmp_path) as url:
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE_S)
        asked = dict(model="tiny", prompt=[ids], max_tokens=30, temperature=0, logit_bias={str(END): -100},
                     extra_body={"return_routed_experts": True})
        text = client.completions.create(**asked).choices[0].model_extra["routed_experts"]
        by_ids = client.post(url + "/inference/v1/generate", cast_to=dict, body={
            "token_ids": ids, "return_routed_experts": True,
            "sampling_params": {"max_tokens": 30, "temperature": 0, "logit_bias": {str(END): -100}}})
        assert by_ids["choices"][0]["routed_experts"] == text
    routed = numpy.load(io.BytesIO(base64.b64decode(text)))
    assert routed.dtype == numpy.int32 and routed.shape == (30, 3, 2)
    tokens = ids + greedy(model, ids, 30)
    with torch.no_grad():
        scores = model(torch.tensor([tokens]), output_router_logits=True).router_logits
    rows = slice(len(ids) - 1, len(tokens) - 1)  # those that predicted the response
    expected = torch.stack([layer[rows].topk(2).indices.sort(-1).values for layer in scores], 1)
    assert routed.tolist() == expected.tolist()


@pytest.mark.parametrize("backend", ["huggingface", "auto"])
def test_lm_eval_scores_as_transformers_does(folder, model, tokenizer, backend):
    """`auto` asks the server for its tokenizer, as lm-eval does by default."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    pairs = [("the cat sat on the ", "mat"), ("1+1=", "2"), ("a b c ", "d e f"), ("x", "yz")]
    with serve(folder) as url:
        local = LocalCompletionsAPI(base_url=url + "/v1/completions", model="tiny", tokenizer=str(folder),
                                    tokenizer_backend=backend, max_length=512, batch_size=2,
                                    num_concurrent=1, max_retries=1)
        requests = [Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=0) for pair in pairs]
        scored = local.loglikelihood(requests, disable_tqdm=True)
        asked = [Instance(request_type="generate_until", doc={}, idx=0,
                          arguments=(context, {"until": ["\n\n"], "max_gen_toks": 12, "temperature": 0}))
                 for context, _ in pairs]
        texts = local.generate_until(asked, disable_tqdm=True)
    for (context, target), (value, is_greedy), text in zip(pairs, scored, texts, strict=True):
        ids = tokenizer(context + target)["input_ids"]
        start = len(tokenizer(context.rstrip())["input_ids"])  # lm-eval scores the space with the target
        table = logprobs_of(model, ids)
        rows = range(start, len(ids))
        assert value == pytest.approx(sum(table[i - 1, ids[i]].item() for i in rows), abs=1e-4 * len(ids))
        assert is_greedy == all(table[i - 1].argmax().item() == ids[i] for i in rows)
        assert isinstance(text, str)
