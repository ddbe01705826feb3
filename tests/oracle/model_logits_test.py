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
