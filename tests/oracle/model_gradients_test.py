"""Gradients of the mean negative log-likelihood equal those of transformers under autograd.

Source: transformers in float64 on the same f32 weights; for the load-balancing loss of experts its
load_balancing_loss_func, over the tokens that have a row here (all but the last of a sequence, whose
successor nobody asks for). Tolerance: relative L2 difference of each tensor 1e-4 (ours is f32), loss
1e-5.
"""

import pytest
import torch
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func
from model_cases import (CASES, drive, gradient_differences, load_reference, make_folder,
                         make_model, sequences)


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


@pytest.mark.parametrize("name", ["plain", "qwen2_tied", "gemma2"])
def test_the_pad_tokens_embedding_as_transformers_has_it(name, tmp_path):
    """nn.Embedding's padding_idx drops the row's gradient, and leaves what comes from a tied head."""
    model = make_model(name)
    tokens = [s for s in sequences(model.config.vocab_size) if len(s) > 1]
    pad = tokens[1][0]
    model.config.pad_token_id = pad
    model.save_pretrained(tmp_path / "model")
    model = load_reference(tmp_path / "model").double()
    assert model.get_input_embeddings().padding_idx == pad
    ours = drive("gradients", tmp_path / "model", tokens, tmp_path, fixed=pad)
    kept = ours["model.embed_tokens.weight"][pad].clone()
    differences, _, _ = gradient_differences(model, ours, tokens)
    assert {k: d for k, d in differences.items() if not d <= 1e-4} == {}
    tied = model.config.tie_word_embeddings
    assert bool(kept.any()) == tied
    whole = drive("gradients", tmp_path / "model", tokens, tmp_path)["model.embed_tokens.weight"][pad]
    assert not torch.equal(whole, kept)


def balance_loss(model, token_sequences):
    """load_balancing_loss_func over the rows of all sequences."""
    rows = [model(torch.tensor([s[:-1]]), output_router_logits=True).router_logits for s in token_sequences]
    layers = tuple(torch.cat(layer) for layer in zip(*rows))
    config = model.config
    experts = getattr(config, "num_local_experts", None) or config.num_experts
    return load_balancing_loss_func(layers, experts, config.num_experts_per_tok)


@pytest.mark.parametrize("name", [name for name in CASES if "moe" in name or "mixtral" in name])
def test_load_balancing_loss_and_its_gradients(name, tmp_path):
    weight = 2.5
    make_folder(name, tmp_path / "model")
    model = load_reference(tmp_path / "model").double()
    tokens = [s for s in sequences(model.config.vocab_size) if len(s) > 1]
    ours = drive("gradients", tmp_path / "model", tokens, tmp_path, balance=weight)
    ours = {key: tensor.clone() for key, tensor in ours.items()}  # the next answer has the same file
    plain = drive("gradients", tmp_path / "model", tokens, tmp_path)
    loss = balance_loss(model, tokens)
    assert abs(ours.pop("balance").item() - loss.item()) <= 1e-5 * loss.item()
    assert loss.item() > model.config.num_experts_per_tok * 1.001  # not equal use
    (weight * loss).backward()
    router = {key: t.grad.clone() for key, t in model.named_parameters() if t.grad is not None}
    differences, _, _ = gradient_differences(model, ours, tokens)
    print(f"{name}: {max(differences.values()):.2e}")
    assert {k: d for k, d in differences.items() if not d <= 1e-4} == {}
    # What the loss alone brings to the routers, so that it cannot hide behind the other gradient.
    gates = [key for key in plain if key.endswith((".mlp.gate.weight", ".block_sparse_moe.gate.weight"))]
    assert len(gates) >= 1
    for key in gates:
        theirs = router[key.replace("block_sparse_moe", "mlp")]
        mine = ours[key].double() - plain[key].double()
        assert ((mine - theirs).norm() / theirs.norm()).item() <= 1e-3, key
