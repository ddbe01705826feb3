"""Rows whose messages hold more than role and text, on every path of the real program.

Source of truth: apply_chat_template of transformers for the text, its tokenizer for the ids, torch on transformers'
Llama for the numbers. 60 rows (tools, calls with arguments as object and as text, thinking, parts, weights, names,
chat_template_kwargs) go through 12 templates, most of which the trl package ships. What a run learned is read from its
figures: the number of targets, and the loss, log-probs, rewards or scores of exactly these ids; what a prompt was, from
the text that the program gives and from log-probs of the greedy response. Rows that transformers refuses are refused.
By day each template has a few rows on some of the paths, and each path some of the templates; all with TROUPE_ALL_ROWS=1.
"""

import contextlib
import copy
import functools
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import urllib.request

import pytest
import torch
import trl
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PreTrainedTokenizerFast

from byte_model import byte_tokenizer
from served import serve

HERE = pathlib.Path(__file__).parent
BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", HERE.parents[1] / "build"))
ALL = os.environ.get("TROUPE_ALL_ROWS") == "1"
SHIPPED, OURS = pathlib.Path(trl.__file__).parent / "chat_templates", HERE.parent / "data" / "templates"
# Where each lies, and the mark with which it ends an answer.
TEMPLATES = {
    "qwen2_5_training": (SHIPPED, "<|im_end|>"), "qwen3_training": (SHIPPED, "<|im_end|>"),
    "qwen3": (SHIPPED, "<|im_end|>"), "lfm2_training": (SHIPPED, "<|im_end|>"),
    "llama3_1": (SHIPPED, "<|eot_id|>"), "llama3_training": (SHIPPED, "<|eot_id|>"),
    "gemma3_training": (SHIPPED, "<end_of_turn>"), "phi3_training": (SHIPPED, "<|end|>"),
    "deepseek_text_calls": (OURS, "<｜end▁of▁sentence｜>"), "cohere_training": (SHIPPED, "<|END_OF_TURN_TOKEN|>"),
    "mistral": (OURS, "</s>"), "qwen25_tools": (OURS, "<|im_end|>"),
}
BOS, END = 257, 256

TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds <two> & \"more\"", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}}}]


def call(arguments, name="add", ident="abcdefghi"):
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(content, **more):
    return {"role": "user", "content": content, **more}


def answer(content, **more):
    return {"role": "assistant", "content": content, **more}


RESULT = {"role": "tool", "content": "{\"sum\": 7}", "tool_call_id": "abcdefghi", "name": "add"}
DIALOGUES = [
    [user("What is 3+4?"), answer("7")],
    [{"role": "system", "content": "Be brief."}, user("Grüße?"), answer("Hallo 🙂")],
    [user("a"), answer("b"), user("c"), answer("d")],
    [user("add"), answer("", tool_calls=[call({"a": 3, "b": 4})]), RESULT, answer("It is 7.")],
    [user("add"), answer(None, tool_calls=[call("{\"a\": 3, \"b\": 4}")]), RESULT, answer("7")],
    [user("add"), answer("", tool_calls=[call("{\"a\": 3}")])],
    [user("think"), answer("7", reasoning_content="3 and 4")],
    [user([{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]), answer("yes")],
    [user("q"), answer([{"type": "text", "text": "parts "}, {"type": "text", "text": "too"}]), user("r"), answer("s")],
    [user("two"), answer("Let me see.", tool_calls=[call({"a": 1}), call({"b": [1, None, True, "ü"]})])],
    [user("hi", name="ann"), answer("<think>\nhm\n</think>\n\nhello")],
    [user("first"), answer("left out", weight=0), user("second"), answer("learned", weight=1)],
]
EXTRAS = [{}, {"tools": TOOLS}, {"tools": json.dumps(TOOLS), "chat_template_kwargs": {"enable_thinking": False}},
          {"chat_template_kwargs": {"enable_thinking": True, "date_string": "26 Jul 2024"}},
          {"tools": TOOLS, "chat_template_kwargs": {"date_string": "1 Jan 2025"}}]
ROWS = [{"messages": copy.deepcopy(dialogue), **extra} for dialogue, extra in itertools.product(DIALOGUES, EXTRAS)]


def chosen_rows(template):
    if ALL:
        return ROWS
    first = list(TEMPLATES).index(template)
    return [row for i, row in enumerate(ROWS) if (i + first) % 30 == 0] + [ROWS[20], ROWS[55]]


class Model:
    """A folder with the tokenizer of bytes, a template, and random weights; and what transformers makes of it."""

    def __init__(self, root, template):
        source, mark = TEMPLATES[template]
        self.folder, self.scores, self.reference = (root / kind / template for kind in ("lm", "rm", "ref"))
        for kind, folder in (("lm", self.folder), ("rm", self.scores), ("ref", self.reference)):
            shutil.copytree(weights(root, kind), folder)
            byte_tokenizer(folder)
            self.write_tokenizer(folder, mark)
            shutil.copy(source / f"{template}.jinja", folder / "chat_template.jinja")
        self.mark = mark
        self.tokenizer = PreTrainedTokenizerFast.from_pretrained(self.folder)
        self.template = template

    @staticmethod
    def write_tokenizer(folder, mark):
        made = json.loads((folder / "tokenizer.json").read_text())
        made["added_tokens"][0]["content"] = mark
        made["model"]["vocab"] = {mark if k == "<|end|>" else k: v for k, v in made["model"]["vocab"].items()}
        made["added_tokens"].append({**made["added_tokens"][0], "id": BOS, "content": "<|bos|>"})
        made["post_processor"] = {
            "type": "TemplateProcessing", "pair": [],
            "single": [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<|bos|>": {"id": "<|bos|>", "ids": [BOS], "tokens": ["<|bos|>"]}}}
        (folder / "tokenizer.json").write_text(json.dumps(made))
        (folder / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": mark, "bos_token": "<|bos|>"}))

    def render(self, row, messages, opens):
        """The text; raises where the template refuses the messages in each form."""
        tools = row.get("tools")
        tools = json.loads(tools) if isinstance(tools, str) else tools
        first = None
        for filled, joined, as_text in itertools.product((False, True), repeat=3):
            try:
                text = self.tokenizer.apply_chat_template(
                    in_form(messages, joined, as_text, filled), tools=tools, tokenize=False, add_generation_prompt=opens,
                    **row.get("chat_template_kwargs", {}))
            except Exception as error:  # whatever the template provokes
                first = first or error
                continue
            if "{'" not in text:  # else it printed a Python object
                return text
        raise first or ValueError("no form is read")

    def joins(self, row):
        """Whether the template reads no lists of parts."""
        tools = row.get("tools")
        try:
            text = self.tokenizer.apply_chat_template(
                in_form(row["messages"], False, False), tools=json.loads(tools) if isinstance(tools, str) else tools,
                tokenize=False, **row.get("chat_template_kwargs", {}))
        except Exception:
            return True
        return "{'" in text

    def ids(self, text):
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def learned(self, row, every_turn):
        """Ids and mask of the row's dialogue; None if an answer's place is not told by what stands before it."""
        messages = row["messages"]
        full = self.render(row, messages, False)
        spans = []
        for i, message in enumerate(messages):
            last = i + 1 == len(messages)
            if message["role"] != "assistant" or not (last or every_turn):
                continue
            if message.get("weight") == 0:
                continue
            before = self.render(row, messages[:i], True)
            until = full if last else self.render(row, messages[:i + 1], False)
            if not full.startswith(until) or not until.startswith(before):
                return None
            spans.append((len(before), len(until)))
        made = self.tokenizer(full, add_special_tokens=False, return_offsets_mapping=True)
        ids, mask = made["input_ids"], [0] * len(made["input_ids"])
        for begin, end in spans:
            inside = [k for k, (a, b) in enumerate(made["offset_mapping"]) if begin <= a < end]
            ends = [k for k in inside if ids[k] == END]
            for k in inside:
                mask[k] = int(not ends or k <= ends[-1])
        size = max(k for k, one in enumerate(mask) if one) + 1
        return ids[:size], mask[:size]

    def prompt_of(self, row):
        return self.render(row, row["messages"][:-1], True)


def in_form(messages, joined, as_text, filled=False):
    made = copy.deepcopy(messages)
    for message in made:
        if filled and message.get("content") is None:
            message["content"] = ""
        for one in message.get("tool_calls", []):
            given = one["function"]["arguments"]
            if as_text:
                one["function"]["arguments"] = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            else:
                one["function"]["arguments"] = json.loads(given) if isinstance(given, str) else given
        if joined and isinstance(message.get("content"), list):
            message["content"] = "".join(part["text"] for part in message["content"])
    return made


@functools.cache
def weights(root, kind):
    torch.manual_seed({"lm": 3, "rm": 4, "ref": 5}[kind])
    config = LlamaConfig(vocab_size=258, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=False, num_labels=1,
                         bos_token_id=None, eos_token_id=END, pad_token_id=None)
    model = (LlamaForSequenceClassification if kind == "rm" else LlamaForCausalLM)(config)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(1.0 if "norm" in name else 0.0, 0.15)
    folder = root / "weights" / kind
    model.save_pretrained(folder)
    return folder


@functools.cache
def torch_model(root, kind):
    loader = LlamaForSequenceClassification if kind == "rm" else LlamaForCausalLM
    return loader.from_pretrained(weights(root, kind)).eval()


@torch.no_grad()
def log_probs(root, ids, kind="lm"):
    """Of each token but the first."""
    logits = torch_model(root, kind)(input_ids=torch.tensor([ids])).logits[0]
    return torch.log_softmax(logits[:-1].double(), -1).gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]


@torch.no_grad()
def score(root, ids):
    model = torch_model(root, "rm")
    hidden = model.model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]
    return float(model.score(hidden)[0])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("whole_messages")


@functools.cache
def model_of(root, template):
    return Model(root, template)


@pytest.fixture
def model(root, request):
    return model_of(root, request.param)


def templates(first, step):
    """By day each `step`-th template."""
    return pytest.mark.parametrize("model", list(TEMPLATES)[0 if ALL else first::1 if ALL else step], indirect=True)


def troupe(*words, code=0):
    done = subprocess.run([str(BUILD / "troupe"), *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 if code is None else done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def write(file, rows):
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return file


def train(root, model, method, rows, start=None, **keys):
    """The figures of one step of all rows."""
    name = f"{method}_{model.template}_{len(list(root.glob('*.jsonl')))}"
    flags = {"actor.model_name_or_path": start or model.folder, "data.dataset": write(root / f"{name}.jsonl", rows),
             "run.path": root / f"run_{name}", "train.batch_size": len(rows), "train.max_steps": 1, "train.threads": 1,
             "train.micro_tokens_max": 4096, "data.max_len": 4096, **keys}
    (root / "empty.yaml").write_text("{}\n")
    troupe("train", method, root / "empty.yaml", *itertools.chain(*((f"--{k}", v) for k, v in flags.items())))
    lines = (root / f"run_{name}" / "metrics.jsonl").read_text().splitlines()
    return next(line for line in map(json.loads, lines) if "policy/loss" in line)


def readable(model, every_turn):
    """The rows that transformers renders and whose answers can be told apart, and what is learned of them."""
    kept = []
    for row in chosen_rows(model.template):
        with contextlib.suppress(Exception):
            if learned := model.learned(row, every_turn):
                kept.append((row, *learned))
    return kept


def close(a, b):
    return a == pytest.approx(b, rel=2e-5, abs=2e-5)


@pytest.mark.parametrize("model, every_turn", [
    (name, every) for i, name in enumerate(TEMPLATES) for every in (False, True) if ALL or every == (i % 2 == 0)],
    indirect=["model"])
def test_sft_learns_these_tokens(root, model, every_turn):
    rows = readable(model, every_turn)
    assert len(rows) >= (15 if ALL else 2)
    figures = train(root, model, "sft", [row for row, _, _ in rows], **{"data.multiturn": str(every_turn).lower()})
    picked = torch.cat([log_probs(root, ids)[torch.tensor(mask[1:], dtype=torch.bool)] for _, ids, mask in rows])
    assert figures["train/targets"] == len(picked)
    assert close(figures["policy/loss"], float(-picked.mean()))


@templates(0, 6)
def test_marks_of_generation_give_the_same_tokens(model):
    """Templates that mark what the assistant says: the oracle above is not ours alone."""
    if "{%- generation" not in model.tokenizer.chat_template and "{% generation" not in model.tokenizer.chat_template:
        pytest.skip("the template has no marks")
    compared = 0
    for row, ids, mask in readable(model, True):
        messages = [{k: v for k, v in one.items() if k != "weight"} for one in row["messages"]]
        if messages != row["messages"] or any(one["content"] is None for one in messages):
            continue
        tools = row.get("tools")
        made = model.tokenizer.apply_chat_template(
            in_form(messages, model.joins(row), False), tools=json.loads(tools) if isinstance(tools, str) else tools,
            tokenize=True, return_dict=True, return_assistant_tokens_mask=True, add_special_tokens=False,
            **row.get("chat_template_kwargs", {}))
        marks = made["assistant_masks"]
        assert made["input_ids"][:len(ids)] == ids
        assert all(marks[k] for k, one in enumerate(mask) if one)
        # What is marked and not learned stands behind the end, or belongs to the prompt of the answer.
        for k in (k for k, one in enumerate(mask) if marks[k] and not one):
            behind = any(ids[j] == END and all(marks[j:k + 1]) for j in range(k))
            before = any(mask[j] and all(marks[k:j + 1]) for j in range(k, len(mask)))
            assert behind or before
        compared += 1
    assert compared >= (10 if ALL else 1)


def pairs_of(model):
    """Rows as pairs, with the ids of prompt and of both answers."""
    made = []
    other = answer("No.")
    for row, ids, mask in readable(model, False):
        prompt = mask.index(1)
        with contextlib.suppress(Exception):
            rest = {k: v for k, v in row.items() if k != "messages"}
            worse, worse_mask = model.learned({**rest, "messages": row["messages"][:-1] + [other]}, False)
            if worse_mask.index(1) == prompt and worse[:prompt] == ids[:prompt]:
                pair = {"prompt": row["messages"][:-1], "chosen": row["messages"][-1:], "rejected": [other], **rest}
                made.append((pair, prompt, ids, worse))
    return made


@templates(0, 6)
def test_dpo_and_rm_compare_these_answers(root, model):
    pairs = pairs_of(model)
    assert len(pairs) >= (15 if ALL else 2)
    figures = train(root, model, "dpo", [pair[0] for pair in pairs])
    for place, name in ((2, "chosen"), (3, "rejected")):
        sums = [float(log_probs(root, pair[place])[pair[1] - 1:].sum()) for pair in pairs]
        assert close(figures[f"logps/{name}"], sum(sums) / len(sums))
    figures = train(root, model, "rm", [pair[0] for pair in pairs], start=model.scores)
    for place, name in ((2, "chosen"), (3, "rejected")):
        scores = [score(root, pair[place]) for pair in pairs]
        assert close(figures[f"rewards/{name}"], sum(scores) / len(scores))


@templates(1, 4)
def test_kto_rates_these_answers(root, model):
    rows, rewards = [], {True: [], False: []}
    for i, (pair, prompt, ids, _) in enumerate(pairs_of(model)):
        good = i % 2 == 0
        rest = {k: v for k, v in pair.items() if k in ("tools", "chat_template_kwargs")}
        rows.append({"input": pair["prompt"], "output": pair["chosen"], "label": good, **rest})
        gain = (log_probs(root, ids) - log_probs(root, ids, "ref"))[prompt - 1:].sum()
        rewards[good].append(0.1 * float(gain))
    figures = train(root, model, "kto", rows, **{"ref.model_name_or_path": model.reference, "kto.beta": 0.1})
    for good, name in ((True, "chosen"), (False, "rejected")):
        assert close(figures[f"rewards/{name}"], sum(rewards[good]) / len(rewards[good]))


@templates(2, 5)
def test_prompts_are_these_in_generate_eval_score_serve_and_ppo(root, model):
    rows, prompts = [], []
    for row in chosen_rows(model.template):
        with contextlib.suppress(Exception):
            whole = model.render(row, row["messages"], False)
            prompts.append(model.prompt_of(row))
            rows.append({**row, "label": "7", "whole": whole})
    assert len(rows) >= (15 if ALL else 2)
    name = f"prompts_{model.template}"
    data = write(root / f"{name}.jsonl", rows)
    flags = ["--data", data, "--temperature", 0, "--max-new-tokens", 3, "--threads", 1]
    out = root / f"{name}_out.jsonl"
    troupe("generate", "--model", model.folder, *flags, "--out", out, "--json")
    drawn = [json.loads(line) for line in out.read_text().splitlines()]
    for row, prompt in zip(drawn, prompts, strict=True):
        assert row["rendered_prompt"] == prompt
        ids = model.ids(prompt) + row["tokens"]
        ours = torch.tensor(row["logprobs"], dtype=torch.double)
        assert torch.allclose(log_probs(root, ids)[-len(ours):], ours, atol=2e-4)
    evaluated = root / f"{name}_eval.jsonl"
    troupe("eval", "--model", model.folder, *flags, "--rule", "exact", "--label-key", "label", "--out", evaluated)
    assert [json.loads(line)["response"] for line in evaluated.read_text().splitlines()] == [
        row["response"] for row in drawn]
    check_scores(root, model, name, rows)
    check_served(model, rows, prompts)
    check_ppo(root, model, data, prompts)


def check_scores(root, model, name, rows):
    """A reward model reads prompt and response through its own template."""
    data = write(root / f"{name}_answers.jsonl", [{**row, "response": "No."} for row in rows])
    out = root / f"{name}_scored.jsonl"
    troupe("score", "--data", data, "--model", model.scores, "--out", out, "--threads", 1)
    for row, scored in zip(rows, map(json.loads, out.read_text().splitlines()), strict=True):
        try:
            text = model.render(row, row["messages"][:-1] + [answer("No.")], False).rstrip("\n")
        except Exception:
            assert scored["reward"] is None
            continue
        ids = model.ids(text)
        assert close(scored["reward"], score(root, ids if ids[-1] == END else ids + [END]))


def check_served(model, rows, prompts):
    with serve(model.folder, "--max-model-len", "4096") as address:
        for row, prompt in zip(rows, prompts, strict=True):
            body = {"messages": row["messages"][:-1], "add_generation_prompt": True}
            body |= {k: row[k] for k in ("chat_template_kwargs",) if k in row}
            if "tools" in row:
                body["tools"] = json.loads(row["tools"]) if isinstance(row["tools"], str) else row["tools"]
            asked = urllib.request.Request(f"{address}/tokenize", json.dumps(body).encode(),
                                           {"Content-Type": "application/json"})
            assert json.load(urllib.request.urlopen(asked, timeout=60))["tokens"] == model.ids(prompt)


def check_ppo(root, model, data, prompts, ids=()):
    run = root / f"run_ppo_{data.stem}"
    (root / "empty.yaml").write_text("{}\n")
    longest = max(map(len, ids or map(model.ids, prompts)))
    flags = {"actor.model_name_or_path": model.folder, "data.prompt_dataset": data, "data.label_key": "label",
             "reward.rule": "exact", "run.path": run, "train.max_steps": 1, "rollout.batch_size": len(prompts),
             "rollout.n_samples_per_prompt": 2, "train.batch_size": 2 * len(prompts), "rollout.max_new_tokens": 2,
             "data.prompt_max_len": longest, "train.micro_tokens_max": 4096, "train.threads": 1}
    words = list(itertools.chain(*((f"--{k}", v) for k, v in flags.items())))
    troupe("train", "ppo", root / "empty.yaml", *words)
    lines = [json.loads(line) for line in (run / "rollouts" / "step_000001.jsonl").read_text().splitlines()]
    assert sorted({line["prompt_id"]: line["prompt"] for line in lines}.items()) == list(enumerate(prompts))
    words[words.index("--data.prompt_max_len") + 1] = longest - 1  # the number of ids is exact
    words[words.index("--run.path") + 1] = root / f"run_ppo_{data.stem}_short"
    assert f"has {longest} tokens" in troupe("train", "ppo", root / "empty.yaml", *words, code=4)


@templates(0, 3)
def test_rows_that_transformers_refuses_are_refused_by_name(root, model):
    refused = []
    for row in chosen_rows(model.template):
        try:
            model.render(row, row["messages"], False)
        except Exception:
            refused.append(row)
    (root / "empty.yaml").write_text("{}\n")
    for i, row in enumerate(refused[: None if ALL else 1]):
        data = write(root / "refused.jsonl", [row])
        said = troupe("train", "sft", root / "empty.yaml", "--actor.model_name_or_path", model.folder, "--data.dataset",
                      data, "--run.path", root / f"run_refused_{model.template}_{i}", "--train.max_steps", 1, code=4)
        assert "refused.jsonl:1" in said and "chat template" in said


PLAIN = [("2+2=", "4"), ("Grüße: ", "Hallo"), ("<|bos|>x", "y")]


def test_plain_text_has_the_tokenizers_own_ids_on_all_paths(root):
    model = model_of(root, "llama3_1")
    own = [model.tokenizer(prompt)["input_ids"] for prompt, _ in PLAIN]
    assert own[0] == [BOS, *b"2+2="]
    answers = [list(text.encode()) + [END] for _, text in PLAIN]
    rows = [{"input": prompt, "prompt": prompt, "output": text, "chosen": text, "rejected": "no", "label": "7"}
            for prompt, text in PLAIN]
    picked = torch.cat([log_probs(root, a + b)[len(a) - 1:] for a, b in zip(own, answers)])
    figures = train(root, model, "sft", rows)
    assert figures["train/targets"] == len(picked) and close(figures["policy/loss"], float(-picked.mean()))
    texts = torch.cat([log_probs(root, a + [END]) for a in own])
    figures = train(root, model, "pretrain", [{"input": row["input"]} for row in rows])
    assert figures["train/targets"] == len(texts) and close(figures["policy/loss"], float(-texts.mean()))
    figures = train(root, model, "dpo", rows)
    sums = [float(log_probs(root, a + b)[len(a) - 1:].sum()) for a, b in zip(own, answers)]
    assert close(figures["logps/chosen"], sum(sums) / len(sums))
    data, out = write(root / "plain.jsonl", rows), root / "plain_out.jsonl"
    sampling = ["--temperature", 0, "--max-new-tokens", 2, "--threads", 1]
    troupe("generate", "--model", model.folder, "--data", data, "--out", out, "--json", *sampling)
    for ids, row in zip(own, map(json.loads, out.read_text().splitlines()), strict=True):
        ours = torch.tensor(row["logprobs"], dtype=torch.double)
        assert torch.allclose(log_probs(root, ids + row["tokens"])[-len(ours):], ours, atol=2e-4)
        alone = json.loads(troupe("generate", "--model", model.folder, "--prompt", row["prompt"], "--json", *sampling)
                           .splitlines()[-1])
        assert (alone["tokens"], alone["logprobs"]) == (row["tokens"], row["logprobs"])
    scored = root / "plain_scored.jsonl"
    troupe("score", "--data", write(root / "plain_answers.jsonl", [{**row, "response": row["output"]} for row in rows]),
           "--model", model.scores, "--out", scored, "--threads", 1)
    for a, b, row in zip(own, answers, map(json.loads, scored.read_text().splitlines()), strict=True):
        assert close(row["reward"], score(root, a + b))
    with serve(model.folder, "--max-model-len", "4096") as address:
        for ids, (prompt, _) in zip(own, PLAIN, strict=True):
            asked = urllib.request.Request(f"{address}/tokenize", json.dumps({"prompt": prompt}).encode(),
                                           {"Content-Type": "application/json"})
            assert json.load(urllib.request.urlopen(asked, timeout=60))["tokens"] == ids
    check_ppo(root, model, data, [prompt for prompt, _ in PLAIN], own)


def test_a_run_that_is_older_than_the_rule_goes_on_as_it_was(root):
    """Its resolved configuration lacks the key; the run without BOS is what versions before the rule did."""
    model = model_of(root, "llama3_1")
    data = write(root / "older.jsonl", [{"input": prompt, "output": text} for prompt, text in PLAIN])
    config = root / "older.yaml"
    config.write_text("actor: {lr_warmup_ratio: 0, lr_scheduler: constant}\n")

    def run(name, steps, *more):
        return troupe("train", "sft", config, "--actor.model_name_or_path", model.folder, "--data.dataset", data,
                      "--run.path", root / name, "--train.max_steps", steps, "--train.batch_size", 3, "--ckpt.save_steps",
                      2, "--train.threads", 1, *more)

    whole = run("unbroken", 4, "--data.add_special_tokens", "false")
    run("older", 2, "--data.add_special_tokens", "false")
    resolved = root / "older" / "resolved_config.yaml"
    kept = [line for line in resolved.read_text().splitlines() if "add_special_tokens" not in line]
    resolved.write_text("\n".join(kept) + "\n")
    said = run("older", 4)
    count = next(line for line in whole.splitlines() if "training rows" in line)
    assert count.split("training rows")[1] in said
    folders = [root / name / "ckpt" / "step_000004" / "model" / "model.safetensors" for name in ("unbroken", "older")]
    assert folders[0].read_bytes() == folders[1].read_bytes()
    new = run("newer", 1)
    assert count.split("training rows")[1] not in new, "a new run has BOS in front"


STRICT = """{%- if not messages|selectattr('role','equalto','user')|list %}{{ raise_exception('No user query found in messages.') }}
{%- endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token if m.role == 'assistant' }}
{% endfor %}{{ '<assistant>' if add_generation_prompt }}"""


def folder_with(root, name, template, end="<|end|>"):
    folder = root / name
    shutil.copytree(weights(root, "lm"), folder)
    byte_tokenizer(folder)
    Model.write_tokenizer(folder, end)
    (folder / "chat_template.jinja").write_text(template)
    return folder


def test_an_answer_whose_beginning_does_not_render_is_learned_from_the_whole(root):
    folder = folder_with(root, "strict", STRICT)
    row = {"messages": [{"role": "system", "content": "s"}, answer("hello"), user("q"), answer("a")]}
    data = write(root / "strict.jsonl", [row])
    (root / "empty.yaml").write_text("{}\n")
    words = ["train", "sft", root / "empty.yaml", "--actor.model_name_or_path", folder, "--data.multiturn", "true",
             "--train.max_steps", 1, "--train.batch_size", 1, "--train.threads", 1]
    troupe(*words, "--data.dataset", data, "--run.path", root / "run_strict")
    lines = map(json.loads, (root / "run_strict" / "metrics.jsonl").read_text().splitlines())
    figures = next(line for line in lines if "policy/loss" in line)
    text = "<system>s\n<assistant>hello\x00\n<user>q\n<assistant>a\x00"
    ids = [END if c == "\x00" else ord(c) for c in text]
    begins = [text.index("hello"), len(ids) - 2]
    learned = [*range(begins[0], begins[0] + 6), *range(begins[1], len(ids))]
    assert figures["train/targets"] == len(learned)
    assert close(figures["policy/loss"], float(-log_probs(root, ids)[torch.tensor(learned) - 1].mean()))
    bad = write(root / "strict_bad.jsonl", [{"messages": [{"role": "system", "content": "s"}, answer("a")]}])
    said = troupe(*words, "--data.dataset", bad, "--run.path", root / "run_strict_bad", code=4)
    assert "strict_bad.jsonl:1" in said and "No user query found" in said


ENDLESS = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<|bos|>\n{% endfor %}{{ '<assistant>' if add_generation_prompt }}"


def test_a_turns_end_at_which_the_model_does_not_stop_is_said(root):
    folder = folder_with(root, "endless", ENDLESS)
    data = write(root / "endless.jsonl", [{"messages": [user("q"), answer("a")], "label": "a"}])
    (root / "empty.yaml").write_text("{}\n")
    note = "the chat template ends an answer with <|bos|>, which is none of the model's end tokens (<|end|>)"
    common = ["--actor.model_name_or_path", folder, "--train.max_steps", 1, "--train.threads", 1]
    sft = ["train", "sft", root / "empty.yaml", *common, "--data.dataset", data, "--train.batch_size", 1]
    ppo = ["train", "ppo", root / "empty.yaml", *common, "--data.prompt_dataset", data, "--reward.rule", "exact",
           "--data.label_key", "label", "--rollout.max_new_tokens", 2, "--rollout.batch_size", 1,
           "--rollout.n_samples_per_prompt", 2, "--train.batch_size", 2]
    for words in (sft, ppo):
        assert troupe(*words, "--run.path", root / f"run_endless_{words[1]}").count(note) == 1
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [END, BOS]}))
    for words in (sft, ppo):
        assert note not in troupe(*words, "--run.path", root / f"run_ended_{words[1]}")


SHOP = '''
class Environment:
    def reset(self, row, seed):
        return {"messages": [{"role": "user", "content": "%s"}], "tools": [{"type": "function", "function": {
            "name": "stock", "description": "d", "parameters": {"type": "object", "properties": {}}}}]}

    def step(self, message):
        return {"reward": 1.0, "done": True}
'''


@pytest.mark.parametrize("template, words, right", [
    ("qwen2_5_training", "hi", True), ("phi3_training", "hi", False), ("phi3_training", "call stock()", True)])
def test_tools_of_an_environment_that_the_template_ignores_are_refused(root, template, words, right):
    model = model_of(root, template)
    name = f"shop_{template}_{right}"
    (root / f"{name}.py").write_text(SHOP % words)
    data = write(root / f"{name}.jsonl", [{"input": [user("hi")]}])
    (root / "empty.yaml").write_text("{}\n")
    said = troupe("train", "ppo", root / "empty.yaml", "--actor.model_name_or_path", model.folder, "--run.path",
                  root / f"run_{name}", "--data.prompt_dataset", data, "--env.python", root / f"{name}.py",
                  "--train.max_steps", 1, "--rollout.batch_size", 1, "--rollout.n_samples_per_prompt", 2,
                  "--train.batch_size", 2, "--rollout.max_new_tokens", 2, "--train.threads", 1, code=0 if right else None)
    assert ("writes nothing of the tools of" in said) == (not right)
    assert right or "(stock)" in said


def test_there_are_60_rows_and_12_templates():
    assert len(ROWS) == 60 and len(TEMPLATES) == 12
