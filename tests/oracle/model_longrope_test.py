"""RoPE `longrope` on both sides of the original length.

Source: transformers' Phi3ForCausalLM in f32, eager attention (gradients: float64 autograd). Tolerance:
logits 2e-5 of the largest, gradients 1e-4 in relative L2.

transformers takes the long factors for a batch whose longest sequence is above the original length and
the short ones for any other. Troupe takes one set a model, by its context: so a long sequence is
compared with transformers as it is, a short one with transformers held to the model's set.
"""

import json

import pytest
from model_cases import (drive, gradient_differences, load_reference, logits_difference, make_folder,
                         sequence)

ORIGINAL = 64
SHORT, LONG = (2, 17, ORIGINAL), (ORIGINAL + 1, 130, 300)
CASES = ["phi3_longrope", "phi3_longrope_part"]


def _tokens(lengths, vocab):
    return [sequence(vocab, n, n) for n in lengths]


def _within_the_original(folder):
    """The same model with its context cut to the original length, its scale of cosines kept."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["rope_parameters"]["factor"] = config["max_position_embeddings"] / ORIGINAL
    config["max_position_embeddings"] = ORIGINAL
    path.write_text(json.dumps(config))


@pytest.mark.parametrize("name", CASES)
def test_long_sequences_have_transformers_logits(name, tmp_path):
    make_folder(name, tmp_path / "model")
    model = load_reference(tmp_path / "model", pinned=False)
    tokens = _tokens(LONG, model.config.vocab_size)
    ours = drive("logits", tmp_path / "model", tokens, tmp_path)
    assert logits_difference(model, ours, tokens) <= 2e-5


@pytest.mark.parametrize("name", CASES)
def test_short_sequences_keep_the_set_of_the_model(name, tmp_path):
    make_folder(name, tmp_path / "model")
    free = load_reference(tmp_path / "model", pinned=False)
    tokens = _tokens(SHORT, free.config.vocab_size)
    ours = drive("logits", tmp_path / "model", tokens, tmp_path)
    assert logits_difference(load_reference(tmp_path / "model"), ours, tokens) <= 2e-5
    assert logits_difference(free, ours, tokens) > 1e-3, "the two sets must differ to be seen"


@pytest.mark.parametrize("name", CASES)
def test_a_context_within_the_original_takes_the_short_factors(name, tmp_path):
    make_folder(name, tmp_path / "model")
    _within_the_original(tmp_path / "model")
    model = load_reference(tmp_path / "model", pinned=False)
    tokens = _tokens(SHORT, model.config.vocab_size)
    ours = drive("logits", tmp_path / "model", tokens, tmp_path)
    assert logits_difference(model, ours, tokens) <= 2e-5


@pytest.mark.parametrize("name", CASES)
def test_short_factors_that_were_chosen_are_transformers_own(name, tmp_path):
    """`longrope_factors` "short": what transformers computes for every sequence up to the original length."""
    make_folder(name, tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "longrope_factors": "short"}))
    model = load_reference(tmp_path / "model", pinned=False)
    tokens = _tokens(SHORT, model.config.vocab_size)
    ours = drive("logits", tmp_path / "model", tokens, tmp_path)
    assert logits_difference(model, ours, tokens) <= 2e-5


@pytest.mark.parametrize("lengths, cut", [(LONG, False), (SHORT, True)])
def test_gradients(lengths, cut, tmp_path):
    make_folder("phi3_longrope_part", tmp_path / "model")
    if cut:
        _within_the_original(tmp_path / "model")
    model = load_reference(tmp_path / "model", pinned=False).double()
    tokens = _tokens(lengths, model.config.vocab_size)
    ours = drive("gradients", tmp_path / "model", tokens, tmp_path)
    differences, our_loss, loss = gradient_differences(model, ours, tokens)
    assert abs(our_loss - loss) <= 1e-5 * loss
    assert {k: d for k, d in differences.items() if not d <= 1e-4} == {}
