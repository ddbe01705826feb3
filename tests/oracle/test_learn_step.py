"""Whole optimiser steps of the policy trainer against transformers, torch and TRL's loss.

Source: transformers in float64 on the same f32 weights, TRL's loss code as test_learn.py runs it, torch's
AdamW and gradient clipping. Tolerance: 1e-4 relative for losses, gradients and moves of the weights.
"""

import pytest
import safetensors.torch
import torch
import transformers
from trl import GRPOTrainer
from trl.trainer.utils import nanstd

from test_learn import close, drive, trl_trainer


@pytest.fixture(params=["tied", "untied"])
def tiny(request, tmp_path):
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=request.param == "tied",
        initializer_range=0.15, rms_norm_eps=1e-5, attention_bias=False, eos_token_id=2,
    )
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(tmp_path / "model")
    return model.double().eval(), tmp_path


def sample_groups(model, generator, update, temperature):
    """Three prompts of unequal length, four responses each, scored at random; log-probs in float64."""
    groups = []
    for slot in range(3):
        prompt = torch.randint(3, 97, (5 + 6 * slot,), generator=generator).tolist()
        samples = []
        for _ in range(4):
            length = int(torch.randint(1, 20, (1,), generator=generator))
            tokens = torch.randint(3, 97, (length,), generator=generator).tolist()
            score = float(torch.randint(0, 3, (1,), generator=generator))
            with torch.no_grad():
                exact = logps_and_entropy(model, prompt, tokens, temperature)[0]
            noise = lambda: (exact + 0.2 * torch.randn(length, generator=generator)).float().tolist()
            samples.append({"tokens": tokens, "score": score, "behaviour": noise(), "reference": noise()})
        groups.append({"update": update, "slot": slot, "prompt": prompt, "samples": samples})
    return groups


def logps_and_entropy(model, prompt, tokens, temperature):
    ids = torch.tensor([prompt + tokens])
    logits = model(ids, attention_mask=torch.ones_like(ids)).logits[0, len(prompt) - 1 : -1] / temperature
    log_probs = logits.log_softmax(-1)
    chosen = log_probs.gather(1, torch.tensor(tokens)[:, None])[:, 0]
    return chosen, -(log_probs.exp() * log_probs).sum(-1)


def pad(rows):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def peer_step(model, optimizer, groups, algo, eps):
    """One GRPO step by transformers, TRL's loss and torch's AdamW, in float64, one sample at a time."""
    samples = [(g["prompt"], s) for g in groups for s in g["samples"]]
    outputs = [logps_and_entropy(model, prompt, s["tokens"], algo["temperature"]) for prompt, s in samples]
    logps, entropies = pad([o[0] for o in outputs]), pad([o[1] for o in outputs])
    column = lambda name: pad([torch.tensor(s[name], dtype=torch.float32).double() for _, s in samples])
    mask = pad([torch.ones(len(s["tokens"]), dtype=torch.float64) for _, s in samples])
    scores = torch.tensor([[s["score"] for s in g["samples"]] for g in groups], dtype=torch.float64)
    advantages = (scores - scores.mean(1, keepdim=True)) / (nanstd(scores, dim=1, keepdim=True) + 1e-4)
    decoupled = algo["objective"] == "decoupled"
    trainer = trl_trainer(
        (logps, entropies), "dapo", algo["kl_coef"], eps, algo["entropy_coef"], correction=decoupled
    )
    ids = torch.zeros_like(mask, dtype=torch.long)
    inputs = {
        "prompt_ids": ids, "prompt_mask": mask, "completion_ids": ids, "completion_mask": mask,
        "advantages": advantages.flatten(), "ref_per_token_logps": column("reference"),
        "old_per_token_logps": column("behaviour"), "num_items_in_batch": mask.sum(),
        "importance_sampling_ratio": torch.ones_like(mask),  # anchor = behaviour
    }
    optimizer.zero_grad()
    loss = GRPOTrainer._compute_loss(trainer, None, inputs)
    loss.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), algo["max_norm"])
    optimizer.step()
    return loss.item(), norm.item(), gradients


@pytest.mark.parametrize("objective", ["ppo", "decoupled"])
@pytest.mark.parametrize("micro_tokens", [4096, 50])
def test_a_whole_grpo_step_is_transformers_and_trls(tiny, objective, micro_tokens):
    """Loss, gradient norm, every gradient and every new weight within 1e-4 relative.

    Behaviour log-probs are the exact ones plus noise and of the starting version, so they are the
    anchor of both sides and the ratios stand away from 1, clipped ones among them. k3 with beta 0.04
    and the ppo objective; without a KL where TRL would not weigh it as we do.
    """
    model, folder = tiny
    eps = (0.2, 0.28)
    algo = {
        "objective": objective, "advantage": "grpo", "reducer": "token_mean", "kl_estimator": "k3",
        "kl_coef": 0.04 if objective == "ppo" else 0.0, "entropy_coef": 0.01, "temperature": 0.8,
        "eps_clip_low": eps[0], "eps_clip_high": eps[1], "correction_max": 2.0, "max_norm": 0.5,
    }
    # eps large against sqrt(v): AdamW near 0 turns rounding noise of a gradient into steps of +-lr.
    optim = {"lr": 1e-2, "beta1": 0.9, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.01,
             "grad_norm_max": algo["max_norm"], "warmup_ratio": 0.0}
    generator = torch.Generator().manual_seed(11)
    groups = sample_groups(model, generator, 0, algo["temperature"])
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    result = drive({
        "op": "train", "model": str(folder / "model"), "out": str(folder / "out"), "algo": algo,
        "optim": optim, "batch": {"micro_tokens_max": micro_tokens}, "updates": [groups],
    })
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95), eps=1e-3, weight_decay=0.01)
    loss, norm, gradients = peer_step(model, optimizer, groups, algo, eps)
    metrics = result["metrics"][0]
    assert (metrics["micro_batches"] >= 3) == (micro_tokens < 100)
    assert metrics["policy/clipfrac"] > 0.05
    close(metrics["policy/loss"], loss, 1e-4, "loss")
    close(metrics["policy/grad_norm"], norm, 1e-4, "gradient norm")
    weights = safetensors.torch.load_file(folder / "out" / "weights.safetensors")
    moments = safetensors.torch.load_file(folder / "out" / "adam_m.safetensors")
    scale = min(1.0, algo["max_norm"] / (norm + 1e-6))
    for name, p in model.named_parameters():
        close(moments[name] / (0.1 * scale), gradients[name], 1e-4, f"gradient of {name}")
        moved = p.detach() - start[name]
        close(weights[name].double() - start[name], moved, 1e-4, f"move of {name}")
    assert set(weights) == {name for name, _ in model.named_parameters()}


def test_mini_batches_and_epochs_equal_single_steps(tiny):
    """Two passes over two mini-batches against four steps of torch with the update's token count.

    TRL scales num_items_in_batch, the tokens of the generation batch, to one accumulation window
    (`* current_gradient_accumulation_steps / steps_per_generation`): the same M / N weights.
    """
    model, folder = tiny
    algo = {"objective": "ppo", "advantage": "grpo", "reducer": "token_mean", "kl_coef": 0.0,
            "entropy_coef": 0.0, "temperature": 1.0, "max_norm": 0.5}
    optim = {"lr": 3e-3, "eps": 1e-3, "weight_decay": 0.0, "grad_norm_max": 0.5, "warmup_ratio": 0.0}
    generator = torch.Generator().manual_seed(2)
    groups = sample_groups(model, generator, 0, 1.0) + sample_groups(model, generator, 0, 1.0)
    for slot, group in enumerate(groups):
        group["slot"] = slot
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    drive({
        "op": "train", "model": str(folder / "model"), "out": str(folder / "out"), "algo": algo,
        "optim": optim, "batch": {"mini_batches": 2, "epochs": 2}, "updates": [groups],
    })
    total = sum(len(s["tokens"]) for g in groups for s in g["samples"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), eps=1e-3, weight_decay=0.0)
    for part in [groups[:3], groups[3:]] * 2:
        optimizer.zero_grad()
        loss = 0
        for group in part:
            scores = torch.tensor([s["score"] for s in group["samples"]], dtype=torch.float64)
            advantages = (scores - scores.mean()) / (scores.std() + 1e-4)
            for sample, advantage in zip(group["samples"], advantages):
                l, _ = logps_and_entropy(model, group["prompt"], sample["tokens"], 1.0)
                r = torch.exp(l - torch.tensor(sample["behaviour"]).double())
                objective = torch.min(r * advantage, r.clamp(0.8, 1.2) * advantage)
                loss = loss - 2 / total * objective.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    weights = safetensors.torch.load_file(folder / "out" / "weights.safetensors")
    for name, p in model.named_parameters():
        moved = p.detach() - start[name]
        close(weights[name].double() - start[name], moved, 1e-4, f"move of {name}")
