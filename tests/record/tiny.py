"""Tiny models, tokenizer and data for the record: the same bytes on every machine and with every
Python. Weights come from SHAKE-256 of their tensor's name, so nothing depends on a library's random numbers."""

import hashlib
import json
import struct
from pathlib import Path

VOCAB = 257
# Ends of a response: often enough that lengths differ.
ENDS = [256, 9, 32, 46, 101, 110, 116, 131, 157, 190, 222]


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def uniform(name, count, width):
    """`count` numbers in [-width, width), exact in 24 bits before they are scaled."""
    words = struct.unpack(f"<{count}I", hashlib.shake_256(name.encode()).digest(4 * count))
    return [((word >> 8) - 0x800000) / 0x800000 * width for word in words]


def write_safetensors(path, tensors):
    """tensors: name -> (shape, values); F32, in order of names."""
    header, parts, offset = {}, [], 0
    for name in sorted(tensors):
        shape, values = tensors[name]
        parts.append(struct.pack(f"<{len(values)}f", *values))
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [offset, offset + len(parts[-1])]}
        offset += len(parts[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def byte_tokenizer(folder):
    """Token b is byte b, token 256 the end."""
    vocab, spare = {"<|end|>": 256}, 0
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE:
            vocab[chr(byte)] = byte
        else:
            vocab[chr(0x100 + spare)] = byte
            spare += 1
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    end = {"id": 256, "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False, "special": True}
    bpe = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
           "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab,
           "merges": []}
    write_json(folder / "tokenizer.json",
               {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [end],
                "normalizer": None, "pre_tokenizer": level, "post_processor": None,
                "decoder": level, "model": bpe})
    write_json(folder / "tokenizer_config.json",
               {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>"})
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{{ '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}[assistant] {% endif %}")


# What a family's config.json says beside the sizes, and which tensors it has beyond Llama's.
FAMILIES = {
    "llama": ("LlamaForCausalLM", {}),
    "mistral": ("MistralForCausalLM", {"sliding_window": 8}),
    "qwen2": ("Qwen2ForCausalLM", {"use_sliding_window": False}),
    "qwen3": ("Qwen3ForCausalLM", {"attention_bias": False}),
    "mixtral": ("MixtralForCausalLM",
                {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "qwen2_moe": ("Qwen2MoeForCausalLM",
                  {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 40,
                   "shared_expert_intermediate_size": 56, "norm_topk_prob": False,
                   "decoder_sparse_step": 1, "mlp_only_layers": [1]}),
    "qwen3_moe": ("Qwen3MoeForCausalLM",
                  {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 40,
                   "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
                   "attention_bias": False}),
    "phi3": ("Phi3ForCausalLM", {"sliding_window": None}),
    "gemma2": ("Gemma2ForCausalLM",
               {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0,
                "query_pre_attn_scalar": 24, "sliding_window": 8}),
    "gemma3_text": ("Gemma3ForCausalLM",
                    {"query_pre_attn_scalar": 24, "sliding_window": 8, "sliding_window_pattern": 2,
                     "rope_local_base_freq": 10000.0}),
}


def sizes(hidden, heads, kv_heads, head_dim, ffn, layers):
    return {"hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "head_dim": head_dim, "intermediate_size": ffn, "num_hidden_layers": layers}


USUAL = sizes(64, 4, 2, 16, 160, 2)
SMALL = sizes(32, 2, 1, 16, 48, 2)
LEAST = sizes(8, 1, 1, 8, 16, 1)


def shapes_of(family, config, tied):
    """Name -> shape of every tensor but the head."""
    h, ffn = config["hidden_size"], config["intermediate_size"]
    d = config["head_dim"]
    q, kv = config["num_attention_heads"] * d, config["num_key_value_heads"] * d
    shapes = {"model.embed_tokens.weight": [VOCAB, h], "model.norm.weight": [h]}

    def mlp(prefix, width, gate="gate_proj", up="up_proj", down="down_proj"):
        shapes.update({f"{prefix}.{gate}.weight": [width, h], f"{prefix}.{up}.weight": [width, h],
                       f"{prefix}.{down}.weight": [h, width]})

    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        norms = ["input_layernorm", "post_attention_layernorm"]
        if family.startswith("gemma"):
            norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
        shapes.update({f"{at}.{norm}.weight": [h] for norm in norms})
        shapes[f"{at}.self_attn.o_proj.weight"] = [h, q]
        if family == "phi3":
            shapes[f"{at}.self_attn.qkv_proj.weight"] = [q + 2 * kv, h]
            shapes[f"{at}.mlp.gate_up_proj.weight"] = [2 * ffn, h]
            shapes[f"{at}.mlp.down_proj.weight"] = [h, ffn]
            continue
        for name, rows in (("q", q), ("k", kv), ("v", kv)):
            shapes[f"{at}.self_attn.{name}_proj.weight"] = [rows, h]
            if family in ("qwen2", "qwen2_moe"):
                shapes[f"{at}.self_attn.{name}_proj.bias"] = [rows]
        if family in ("qwen3", "qwen3_moe", "gemma3_text"):
            shapes[f"{at}.self_attn.q_norm.weight"] = [d]
            shapes[f"{at}.self_attn.k_norm.weight"] = [d]
        if family == "mixtral":
            experts = config["num_local_experts"]
            shapes[f"{at}.block_sparse_moe.gate.weight"] = [experts, h]
            for e in range(experts):
                mlp(f"{at}.block_sparse_moe.experts.{e}", ffn, "w1", "w3", "w2")
        elif family.endswith("_moe") and layer not in config["mlp_only_layers"]:
            shapes[f"{at}.mlp.gate.weight"] = [config["num_experts"], h]
            for e in range(config["num_experts"]):
                mlp(f"{at}.mlp.experts.{e}", config["moe_intermediate_size"])
            if family == "qwen2_moe":
                mlp(f"{at}.mlp.shared_expert", config["shared_expert_intermediate_size"])
                shapes[f"{at}.mlp.shared_expert_gate.weight"] = [1, h]
        else:
            mlp(f"{at}.mlp", ffn)
    if not tied:
        shapes["lm_head.weight"] = [VOCAB, h]
    return shapes


def write_model(folder, family="llama", size=None, seed="model", score=False, tied=False, more=None):
    """A model of random weights with the byte tokenizer; `score`: a reward model; `more`: of its config.json."""
    folder.mkdir(parents=True)
    architecture, extra = FAMILIES[family]
    config = {"architectures": [architecture], "model_type": family, "vocab_size": VOCAB,
              "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "hidden_act": "silu", "tie_word_embeddings": tied, "bos_token_id": None,
              "eos_token_id": ENDS, "pad_token_id": None, "torch_dtype": "float32",
              **(size or USUAL), **extra, **(more or {})}
    if family.startswith("gemma"):
        config.update(hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh")
    if score:
        config.update(architectures=[architecture.replace("CausalLM", "SequenceClassification")],
                      num_labels=1, mean=0.125, std=0.75)
    tensors = {}
    for name, shape in shapes_of(family, config, tied or score).items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = uniform(f"{seed}/{name}", count, 0.05 if "norm" in name else 0.35)
        if "norm" in name and not family.startswith("gemma"):
            values = [1 + value for value in values]
        tensors[name] = (shape, values)
    if score:
        tensors["score.weight"] = ([1, config["hidden_size"]],
                                   uniform(f"{seed}/score", config["hidden_size"], 0.35))
    write_json(folder / "config.json", config)
    write_safetensors(folder / "model.safetensors", tensors)
    byte_tokenizer(folder)


REWARD = '''# Vowels count; the score of a first sample is missing now and then.
import math


def reward_func(queries, prompts, labels):
    scores = []
    for at, (query, prompt) in enumerate(zip(queries, prompts)):
        response = query[len(prompt):]
        score = sum(response.count(vowel) for vowel in "aeiou") + 0.25 * math.sqrt(len(response))
        scores.append(None if at == 0 and len(response) % 4 == 0 else score)
    return {"rewards": scores, "extra_logs": {"length": [len(query) for query in queries]}}
'''

PLAIN_REWARD = '''def reward_func(queries, prompts, labels):
    return [sum(query.count(letter) for letter in "aeiou<>()") / len(query) for query in queries]
'''

# Holds the first group back until the samples of the next update are made too: the groups of update 1
# are scored one after the other, and those of update 2 take milliseconds.
ADVANTAGE = '''import random


def advantage(advantages, logprobs, lengths, seed, update):
    draw = random.Random(1000 * seed + update)
    return {"advantages": [a * (1 - l / 4) for a, l in zip(advantages, logprobs)],
            "weights": [w for n in lengths for w in [0.5 + draw.random()] * int(n)]}
'''
LATE_REWARD = '''import time

calls = 0


def reward_func(queries, prompts, labels):
    global calls
    calls += 1
    if calls == 1:
        time.sleep(0.5)
    return [sum(query[len(prompt):].count(letter) for letter in "aeiouAEIOU<>()")
            + 0.125 * len(query) for query, prompt in zip(queries, prompts)]
'''


def write_data(folder):
    """Rows of every method, in every form that is read."""
    folder.mkdir(parents=True, exist_ok=True)
    sums = [(a, b) for a in range(6) for b in range(4)]
    prompts = [{"prompt": f"{a}+{b}=", "answer": "abc"[(a + b) % 3],
                "datasource": "even" if b % 2 == 0 else "odd"} for a, b in sums]
    write_rows(folder / "train.jsonl", prompts)
    write_rows(folder / "more.jsonl", [{"prompt": f"{a}-{b} is", "answer": "de"[a % 2]}
                                       for a, b in sums[:10]])
    write_rows(folder / "heldout.jsonl", prompts[::5])
    # What an untrained model may answer: a byte that is no character, a digit.
    write_rows(folder / "exact.jsonl", [{**row, "answer": "\ufffd"} for row in prompts])
    write_rows(folder / "digits.jsonl", [{**row, "answer": "1"} for row in prompts])
    write_rows(folder / "chats.jsonl",
               [{"prompt": [{"role": "user", "content": f"add {a} to {b}"}], "answer": "abc"[a % 3]}
                for a, b in sums[:16]])
    write_rows(folder / "answers.jsonl", [{"input": f"{a}+{b}=", "output": str(a + b)}
                                          for a, b in sums[:16]])
    write_rows(folder / "more_answers.jsonl", [{"input": f"{b}-{a}=", "output": str(b - a)}
                                               for a, b in sums[4:16]])
    write_rows(folder / "dialogues.jsonl",
               [{"messages": [{"role": "user", "content": f"{a}"},
                              {"role": "assistant", "content": f"{a} is a number"},
                              {"role": "user", "content": f"and {b}?"},
                              {"role": "assistant", "content": "too" if b else "no number of mine"}]}
                for a, b in sums[:16]])
    write_rows(folder / "texts.jsonl", [{"text": f"{a} and {b} make {a + b}"} for a, b in sums])
    write_rows(folder / "ptx.jsonl", [{"prompt": f"{b} of {a}, or {a * b}"} for a, b in sums])
    write_rows(folder / "pairs.jsonl",
               [{"input": f"{a}+{b}=", "chosen": str(a + b), "rejected": "fish"[: 1 + b],
                 "margin": 0.25 * b} for a, b in sums[:16]])
    write_rows(folder / "chat_pairs.jsonl",
               [{"prompt": [{"role": "user", "content": f"{a}+{b}"}],
                 "chosen": [{"role": "assistant", "content": str(a + b)}],
                 "rejected": [{"role": "assistant", "content": "a fish"}]} for a, b in sums[:12]])
    write_rows(folder / "steps.jsonl",
               [{"input": f"{a}+{b}? {a}#\n{a + b}#", "label": ["+", "+-"[b % 2]] if a % 2 else [0.75, b / 4]}
                for a, b in sums[:16]])
    write_json(folder / "alpaca.json",
               [{"instruction": "add", "input": f"{a} {b}" if b else "", "output": f"{a + b}"}
                for a, b in sums[:12]])
    write_json(folder / "sharegpt.json",
               [{"conversations": [{"from": "human", "value": f"{a} and {b}?"},
                                   {"from": "gpt", "value": f"{a + b}"}],
                 "system": "count", "label": "abc"[a % 3]} for a, b in sums[:12]])
    write_rows(folder / "sharegpt_pairs.jsonl",
               [{"conversations": [{"from": "human", "value": f"{a} and {b}?"}],
                 "chosen": {"from": "gpt", "value": f"{a + b}"},
                 "rejected": {"from": "gpt", "value": "fish"}} for a, b in sums[:12]])
    (folder / "rated.csv").write_text(
        "input,output,label\n" +
        "".join(f"{a}+{b}=,{a + b if b % 2 == 0 else 'a fish'},{'true' if b % 2 == 0 else 'false'}\n"
                for a, b in sums[:16]))
    (folder / "reward.py").write_text(REWARD)
    (folder / "plain_reward.py").write_text(PLAIN_REWARD)
    (folder / "late_reward.py").write_text(LATE_REWARD)
    (folder / "advantage.py").write_text(ADVANTAGE)


def write_inputs(folder):
    """Everything that runs of the record read, below `folder`."""
    folder = Path(folder)
    write_model(folder / "model")
    write_model(folder / "other", seed="other")
    for name in ("rm-a", "rm-b"):
        write_model(folder / name, size=SMALL, seed=name, score=True)
    write_model(folder / "prm", size=SMALL, seed="prm",
                more={"process_reward": {"placeholder_token": "#", "reward_tokens": ["+", "-"],
                                         "step_separator": "\n"}})
    write_model(folder / "least", size=LEAST, seed="least", tied=True)
    write_model(folder / "least-rm", size=LEAST, seed="least-rm", score=True)
    for family in FAMILIES:
        write_model(folder / "family" / family, family, SMALL, seed=family,
                    tied=family.startswith("gemma"))
    write_data(folder / "data")
