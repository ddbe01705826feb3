"""SmolLM2-135M-Instruct, the demo's model: logits and gradients equal transformers'.

Source: transformers in f32 (logits) and float64 (gradients). Tolerance: logits 2e-5 x max|logit|,
gradients 1e-4 relative L2 by tensor. Skipped, visibly, where the model was not fetched.
"""

import pytest
from model_cases import (REAL_MODEL, drive, gradient_differences, load_reference,
                         logits_difference)

pytestmark = pytest.mark.skipif(
    not (REAL_MODEL / "config.json").exists(),
    reason=f"THE REAL MODEL IS NOT THERE: no {REAL_MODEL}; `./dev demo` fetches it")

TOKENS = [list(range(100, 140)), [1, 9690, 198, 2683, 359] * 30]


def test_logits(tmp_path):
    model = load_reference(REAL_MODEL)
    worst = logits_difference(model, drive("logits", REAL_MODEL, TOKENS, tmp_path), TOKENS)
    print(f"SmolLM2 logits: {worst:.2e}")
    assert worst <= 2e-5


def test_gradients(tmp_path):
    model = load_reference(REAL_MODEL).double()
    ours = drive("gradients", REAL_MODEL, TOKENS[:1], tmp_path)
    differences, our_loss, loss = gradient_differences(model, ours, TOKENS[:1])
    print(f"SmolLM2 gradients: {max(differences.values()):.2e}")
    assert abs(our_loss - loss) <= 1e-5 * loss
    assert {k: d for k, d in differences.items() if not d <= 1e-4} == {}
