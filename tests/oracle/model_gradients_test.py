"""Gradients of the mean negative log-likelihood equal those of transformers under autograd.

Source: transformers in float64 on the same f32 weights. Tolerance: relative L2 difference of each
tensor 1e-4 (ours is f32).
"""

import pytest
import torch
from model_cases import CASES, drive, load_reference, make_folder, sequences


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_random_models(name, tmp_path):
    make_folder(name, tmp_path / "model")
    model = load_reference(tmp_path / "model").double()
    tokens = [s for s in sequences(model.config.vocab_size) if len(s) > 1]
    total = sum(len(s) - 1 for s in tokens)
    loss = 0.0
    for ids in tokens:
        logp = model(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
        loss = loss - logp.gather(1, torch.tensor(ids[1:])[:, None]).sum() / total
    loss.backward()
    ours = drive("gradients", tmp_path / "model", tokens, tmp_path)
    assert abs(ours.pop("loss").item() - loss.item()) <= 1e-5 * loss.item()
    theirs = dict(model.named_parameters())
    assert set(ours) == set(theirs)
    worst = 0.0
    for key, gradient in ours.items():
        difference = (gradient - theirs[key].grad).norm() / theirs[key].grad.norm()
        worst = max(worst, difference.item())
        assert difference <= 1e-4, f"{key}: {difference}"
    print(f"{name}: {worst:.2e}")
