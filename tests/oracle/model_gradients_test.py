"""Gradients of the mean negative log-likelihood equal those of transformers under autograd.

Source: transformers in float64 on the same f32 weights. Tolerance: relative L2 difference of each
tensor 1e-4 (ours is f32), loss 1e-5.
"""

import pytest
from model_cases import (CASES, drive, gradient_differences, load_reference, make_folder,
                         sequences)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_random_models(name, tmp_path):
    make_folder(name, tmp_path / "model")
    model = load_reference(tmp_path / "model").double()
    tokens = [s for s in sequences(model.config.vocab_size) if len(s) > 1]
    ours = drive("gradients", tmp_path / "model", tokens, tmp_path)
    differences, our_loss, loss = gradient_differences(model, ours, tokens)
    assert abs(our_loss - loss) <= 1e-5 * loss
    print(f"{name}: {max(differences.values()):.2e}")
    assert {k: d for k, d in differences.items() if not d <= 1e-4} == {}
