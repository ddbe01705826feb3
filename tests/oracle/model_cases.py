"""Random model folders made by transformers, and the driver that runs ours on them.

Used by model_logits_test.py, model_gradients_test.py and model_folder_test.py. Every case is
scaled so that the logits' standard deviation is at least 1: an error hides in near-zero logits.
"""

import json
import os
import subprocess
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import (AutoModelForCausalLM, Gemma2Config, Gemma3TextConfig, LlamaConfig, MistralConfig,
                          MixtralConfig, Phi3Config, Qwen2Config, Qwen2MoeConfig, Qwen3Config,
                          Qwen3MoeConfig)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.utils import logging

logging.disable_progress_bar()

BUILD = Path(os.environ.get("TROUPE_BUILD_DIR", Path(__file__).parents[2] / "build"))
DRIVER = BUILD / "bin" / "model_driver"
REAL_MODEL = Path(os.environ.get("TROUPE_TEST_MODEL", "/nonexistent"))

SMALL = dict(
    hidden_size=64,
    intermediate_size=176,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    vocab_size=300,
    rms_norm_eps=1e-5,
)
# Name: configuration class and what differs from SMALL.
CASES = {
    "plain": (LlamaConfig, {}),
    # 8 heads on 2: which queries share a key head matters.
    "grouped": (LlamaConfig, dict(num_attention_heads=8, head_dim=16, tie_word_embeddings=True)),
    "head_dim_20": (LlamaConfig, dict(hidden_size=60, num_attention_heads=3, num_key_value_heads=3,
                                      head_dim=20)),
    "one_kv_head": (LlamaConfig, dict(num_key_value_heads=1)),
    "vocab_257_tied": (LlamaConfig, dict(vocab_size=257, tie_word_embeddings=True)),
    # An eps that shows when it stands outside the root.
    "large_eps": (LlamaConfig, dict(rms_norm_eps=0.05)),
    "linear": (LlamaConfig, dict(rope_parameters=dict(
        rope_type="linear", rope_theta=10000.0, factor=2.5))),
    "llama3": (LlamaConfig, dict(rope_parameters=dict(
        rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0,
        high_freq_factor=4.0, original_max_position_embeddings=64))),
    "qwen2": (Qwen2Config, dict(rms_norm_eps=1e-6, rope_parameters=dict(
        rope_type="default", rope_theta=1000000.0))),
    "qwen2_tied": (Qwen2Config, dict(tie_word_embeddings=True, vocab_size=257)),
    "llama_biases": (LlamaConfig, dict(attention_bias=True, mlp_bias=True)),
    # Layers 1 and 2 slide; the window ends inside a block of 64 keys.
    "qwen2_sliding": (Qwen2Config, dict(use_sliding_window=True, sliding_window=37, max_window_layers=1)),
    "mistral": (MistralConfig, dict(hidden_size=60, num_attention_heads=3, num_key_value_heads=1,
                                    head_dim=24, sliding_window=24)),
    # Longer than a block of 64 keys, and not a multiple of the 16 slots of a KV block.
    "mistral_wide": (MistralConfig, dict(sliding_window=101, vocab_size=257, tie_word_embeddings=True)),
    "mistral_full": (MistralConfig, dict(sliding_window=None, num_key_value_heads=4)),
    "qwen3": (Qwen3Config, dict(head_dim=24)),
    "qwen3_sliding": (Qwen3Config, dict(
        hidden_size=60, num_attention_heads=6, num_key_value_heads=2, head_dim=18, vocab_size=257,
        tie_word_embeddings=True, use_sliding_window=True, sliding_window=16,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "qwen3_biases": (Qwen3Config, dict(head_dim=16, attention_bias=True)),
    "mixtral": (MixtralConfig, dict(num_local_experts=5, num_experts_per_tok=2,
                                    intermediate_size=72)),
    "mixtral_sliding": (MixtralConfig, dict(
        hidden_size=60, num_attention_heads=3, num_key_value_heads=1, vocab_size=257,
        intermediate_size=44, num_local_experts=3, num_experts_per_tok=2, sliding_window=40)),
    # 19 experts and the shared one's gate: more than one panel. Layer 1 is dense.
    "qwen2_moe": (Qwen2MoeConfig, dict(
        num_experts=19, num_experts_per_tok=4, moe_intermediate_size=20,
        shared_expert_intermediate_size=36, mlp_only_layers=[1])),
    "qwen2_moe_normed": (Qwen2MoeConfig, dict(
        hidden_size=60, num_attention_heads=3, num_key_value_heads=1, vocab_size=257,
        num_experts=8, num_experts_per_tok=3, moe_intermediate_size=33, norm_topk_prob=True,
        shared_expert_intermediate_size=50, decoder_sparse_step=2, qkv_bias=False,
        tie_word_embeddings=True)),
    "qwen3_moe": (Qwen3MoeConfig, dict(
        head_dim=24, num_experts=16, num_experts_per_tok=4, moe_intermediate_size=24,
        norm_topk_prob=True)),
    "qwen3_moe_plain": (Qwen3MoeConfig, dict(
        num_experts=40, num_experts_per_tok=8, moe_intermediate_size=17, mlp_only_layers=[0],
        attention_bias=True, vocab_size=257, tie_word_embeddings=True)),
    "phi3": (Phi3Config, dict(rope_parameters=dict(
        rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.75))),
    "phi3_sliding": (Phi3Config, dict(hidden_size=60, num_attention_heads=3, num_key_value_heads=3,
                                      intermediate_size=90, vocab_size=257, sliding_window=40)),
    # Factors of both sets; the sets differ so much that taking the wrong one is seen.
    "phi3_longrope": (Phi3Config, dict(original_max_position_embeddings=64, rope_parameters=dict(
        rope_type="longrope", rope_theta=10000.0,
        short_factor=[1.0 + 0.05 * i for i in range(8)],
        long_factor=[1.0 + 0.9 * i for i in range(8)]))),
    "phi3_longrope_part": (Phi3Config, dict(
        hidden_size=60, num_attention_heads=3, num_key_value_heads=1, vocab_size=257,
        sliding_window=40, tie_word_embeddings=True, original_max_position_embeddings=64,
        rope_parameters=dict(
            rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.8, factor=16.0,
            short_factor=[1.0, 1.01, 1.02, 1.2, 1.3, 1.5, 1.75, 2.0],
            long_factor=[1.1, 1.3, 2.1, 3.4, 7.9, 13.0, 20.5, 31.0]))),
    "gemma2": (Gemma2Config, dict(head_dim=24, query_pre_attn_scalar=40, sliding_window=24,
                                  attn_logit_softcapping=2.0, final_logit_softcapping=4.0)),
    "gemma2_odd": (Gemma2Config, dict(
        hidden_size=60, num_attention_heads=6, num_key_value_heads=1, head_dim=14, vocab_size=257,
        query_pre_attn_scalar=14, attn_logit_softcapping=None, final_logit_softcapping=None,
        sliding_window=70,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"])),
    "gemma3": (Gemma3TextConfig, dict(
        num_hidden_layers=7, head_dim=20, query_pre_attn_scalar=20, sliding_window=20,
        rope_parameters=dict(
            full_attention=dict(rope_type="linear", rope_theta=1000000.0, factor=8.0),
            sliding_attention=dict(rope_type="default", rope_theta=10000.0)))),
    "gemma3_odd": (Gemma3TextConfig, dict(
        hidden_size=60, num_attention_heads=3, num_key_value_heads=1, head_dim=26, vocab_size=257,
        query_pre_attn_scalar=30, sliding_window=65, final_logit_softcapping=5.0,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
}


def make_model(name):
    """A random model whose logits have a standard deviation of at least 1."""
    config_class, changes = CASES[name]
    config = config_class(**{**SMALL, **changes}, bos_token_id=1, eos_token_id=2, pad_token_id=None)
    torch.manual_seed(sum(map(ord, name)))
    model = loop_experts(AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval())
    with torch.no_grad():
        for key, tensor in model.named_parameters():
            if "norm" in key:
                tensor.normal_(0.0 if "gemma" in name else 1.0, 0.2)
            elif key.endswith("bias"):
                tensor.normal_(0.0, 0.5)
            else:
                tensor.normal_(0.0, 1.6 / tensor.shape[-1] ** 0.5)
        model.model.embed_tokens.weight.normal_(0.0, 0.5)
        std = model(torch.tensor([sequence(config.vocab_size, 64)])).logits.std().item()
        if std < 1.0:
            model.lm_head.weight.mul_(1.1 / std)
        std = model(torch.tensor([sequence(config.vocab_size, 64)])).logits.std().item()
    assert std >= 1.0, f"{name}: logit deviation {std}"
    return model


def make_folder(name, folder, **options):
    model = make_model(name)
    model.save_pretrained(folder, **options)
    return model


def load_reference(folder, pinned=True):
    """The model as transformers opens it; `pinned`: with one set of longrope's factors, as ours."""
    model = loop_experts(AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval())
    for tensor in model.parameters():  # a mapped file's alignment would choose another order of a sum
        tensor.data = tensor.data.clone()
    if pinned:
        pin_longrope(model)
    return model


def pin_longrope(model):
    """Takes the long factors for short sequences too, where the context is above the original."""
    rope = getattr(model.config, "rope_parameters", None) or {}
    original = rope.get("original_max_position_embeddings")
    if rope.get("rope_type") != "longrope" or model.config.max_position_embeddings <= original:
        return
    rotary = model.model.rotary_emb
    long, _ = ROPE_INIT_FUNCTIONS["longrope"](model.config, seq_len=original + 1)
    rotary.original_inv_freq = long


def loop_experts(model):
    """One expert after another: transformers' grouped product takes no doubles and no odd widths."""
    model.config._experts_implementation = "eager"
    return model


def sequence(vocab, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, vocab, (length,), generator=generator).tolist()


def sequences(vocab):
    """Lengths around the blocks of 16 and 64 tokens, and one long."""
    return [sequence(vocab, n, n) for n in (1, 2, 16, 17, 63, 64, 65, 130, 300)]


def drive(command, folder, token_sequences, scratch, temperature=1.0, balance=0.0, fixed=-1):
    request, reply = scratch / "request.json", scratch / "reply.safetensors"
    request.write_text(json.dumps({"sequences": token_sequences, "temperature": temperature,
                                   "balance": balance, "fixed": fixed}))
    subprocess.run([DRIVER, command, folder, request, reply], check=True, timeout=240)
    return load_file(reply)


def save(folder, out, dtype="f32", shard_bytes=4 << 30, score_seed=None):
    head = [] if score_seed is None else ["score", str(score_seed)]
    subprocess.run([DRIVER, "save", folder, out, dtype, str(shard_bytes), *head], check=True,
                   timeout=120)


def logits_difference(model, ours, token_sequences):
    """The largest difference from transformers' logits, over the largest logit of the sequence."""
    worst = 0.0
    for i, tokens in enumerate(token_sequences):
        with torch.no_grad():
            theirs = model(torch.tensor([tokens])).logits[0]
        mine = ours[str(i)]
        assert mine.shape == theirs.shape
        worst = max(worst, ((mine - theirs).abs().max() / theirs.abs().max()).item())
    return worst


def fuse_experts(tensors, names):
    """Experts by number, as files have them, stacked as transformers has them in memory."""
    spelling = [(".block_sparse_moe.", ".mlp."), (".w1.", ".gate_proj."), (".w3.", ".up_proj."),
                (".w2.", ".down_proj.")]
    for old, new in spelling:
        tensors = {key.replace(old, new): tensor for key, tensor in tensors.items()}
    for name in names:
        if not name.endswith((".experts.gate_up_proj", ".experts.down_proj")):
            continue
        base, kind = name.rsplit(".", 1)
        parts = ["gate_proj", "up_proj"] if kind == "gate_up_proj" else ["down_proj"]
        count = sum(key.startswith(base) and key.endswith(parts[0] + ".weight") for key in tensors)
        tensors[name] = torch.stack([
            torch.cat([tensors.pop(f"{base}.{e}.{part}.weight") for part in parts])
            for e in range(count)])
    return tensors


def gradient_differences(model, ours, token_sequences):
    """Relative L2 difference by tensor from autograd on `model`, and both losses."""
    total = sum(len(s) - 1 for s in token_sequences)
    loss = 0.0
    for ids in token_sequences:
        part = model(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
        part = -part.gather(1, torch.tensor(ids[1:])[:, None]).sum() / total
        part.backward()
        loss += part.item()
    our_loss = ours.pop("loss").item()
    theirs = dict(model.named_parameters())
    ours = fuse_experts(ours, theirs)
    assert set(ours) == set(theirs)
    return {key: ((ours[key] - theirs[key].grad).norm() / theirs[key].grad.norm()).item()
            for key in ours}, our_loss, loss


def compare_all(one, other):
    """Two transformers models have the same tensors and so the same logits."""
    tensors = dict(other.named_parameters())
    for name, tensor in one.named_parameters():
        assert torch.equal(tensor, tensors[name]), name
    ids = torch.tensor([sequence(one.config.vocab_size, 50)])
    with torch.no_grad():
        assert torch.equal(one(ids).logits, other(ids).logits)
