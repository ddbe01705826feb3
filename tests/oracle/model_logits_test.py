"""Logits and log-probs equal transformers'.

Source: transformers' *ForCausalLM of each family in f32, eager attention. Tolerance: logits
max difference 2e-5 x max|logit|, both sides f32 with sums in different orders; log-probs and entropies
against float64 on the same logits scale, 1e-4.
"""

import pytest
import torch
from model_cases import (CASES, drive, load_reference, logits_difference, make_folder,
                         sequences)

TOLERANCE = 2e-5


@pytest.mark.parametrize("name", CASES)
def test_logits_of_random_models(name, tmp_path):
    make_folder(name, tmp_path / "model")
    model = load_reference(tmp_path / "model")
    tokens = sequences(model.config.vocab_size)
    worst = logits_difference(
        model, drive("logits", tmp_path / "model", tokens, tmp_path), tokens)
    print(f"{name}: {worst:.2e}")
    assert worst <= TOLERANCE


def _bf16(weight):
    return weight.bfloat16().float()


def _int8(weight):
    largest = weight.abs().amax(1, keepdim=True)
    return (weight * (127 / largest)).round().clamp(-127, 127) * (largest / 127)


@pytest.mark.parametrize("stored, command", [(_bf16, "logits-bf16"), (_int8, "logits-int8")])
@pytest.mark.parametrize("name", ["plain", "qwen2_tied"])
def test_logits_of_stored_weights(name, stored, command, tmp_path):
    """Matrices and head stored as bf16 (torch's rounding) or int8 by row; all else stays f32."""
    make_folder(name, tmp_path / "model")
    model = load_reference(tmp_path / "model")
    tokens = sequences(model.config.vocab_size)
    ours = drive(command, tmp_path / "model", tokens, tmp_path)
    assert logits_difference(model, ours, tokens) > TOLERANCE, "the rounding must be seen"
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.copy_(stored(module.weight))
    worst = logits_difference(model, ours, tokens)
    print(f"{name} {command}: {worst:.2e}")
    assert worst <= TOLERANCE


@pytest.mark.parametrize("name", ["plain", "qwen2_tied"])
def test_logprobs_and_entropies(name, tmp_path):
    make_folder(name, tmp_path / "model")
    model = load_reference(tmp_path / "model").double()
    tokens = [s for s in sequences(model.config.vocab_size) if len(s) > 1]
    ours = drive("logprobs", tmp_path / "model", tokens, tmp_path, temperature=0.7)
    for i, ids in enumerate(tokens):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, :-1] / 0.7
        logp = logits.log_softmax(-1)
        target = torch.tensor(ids[1:])
        theirs = logp.gather(1, target[:, None])[:, 0]
        entropy = -(logp.exp() * logp).sum(-1)
        assert (ours[f"{i}.logprobs"] - theirs).abs().max() <= 1e-4
        assert (ours[f"{i}.entropies"] - entropy).abs().max() <= 1e-4
