"""Score models (reward models, critics) equal transformers' *ForSequenceClassification.

Source: AutoModelForSequenceClassification with one label, in float64 for gradients. Convention: the
score of a sequence is the head's value at its last token; the body is the language model's, the
head `score.weight` [1, hidden] without bias. Tolerance: values 2e-5 of the largest, gradients 1e-4
relative L2 by tensor, weights and configuration exact.
"""

import json

import pytest
import torch
from model_cases import drive, fuse_experts, loop_experts, make_folder, save, sequences
from transformers import AutoModelForSequenceClassification

CASES = ["plain", "grouped", "qwen2", "qwen2_tied", "mistral", "qwen3", "phi3", "gemma2", "gemma3_odd",
         "mixtral", "qwen2_moe", "qwen3_moe"]


def open_score_model(folder):
    return loop_experts(AutoModelForSequenceClassification.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval())


def score_folder(name, folder):
    """A random score model as transformers saves one."""
    make_folder(name, folder / "language")
    torch.manual_seed(3)
    model = loop_experts(AutoModelForSequenceClassification.from_pretrained(
        folder / "language", num_labels=1, dtype=torch.float32, attn_implementation="eager").eval())
    with torch.no_grad():
        model.score.weight.normal_(0.0, 0.3)
    model.save_pretrained(folder / "score")
    return model, folder / "score"


def all_values(model, ids):
    return model.score(model.model(torch.tensor([ids])).last_hidden_state)[0, :, 0]


@pytest.mark.parametrize("name", CASES)
def test_what_transformers_saves_has_the_same_scores(name, tmp_path):
    model, folder = score_folder(name, tmp_path)
    tokens = sequences(model.config.vocab_size)
    ours = drive("values", folder, tokens, tmp_path)
    for i, ids in enumerate(tokens):
        with torch.no_grad():
            theirs = all_values(model, ids)
            score = model(torch.tensor([ids])).logits[0, 0]
        assert theirs[-1] == score  # what the convention says of transformers
        assert ours[str(i)].shape == theirs.shape
        assert (ours[str(i)] - theirs).abs().max() <= 2e-5 * theirs.abs().max()


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_the_values(name, tmp_path):
    model, folder = score_folder(name, tmp_path)
    model = model.double()
    tokens = sequences(model.config.vocab_size)
    ours = drive("value_gradients", folder, tokens, tmp_path)
    total = sum(map(len, tokens))
    loss = sum(all_values(model, ids).square().sum() for ids in tokens) / total / 2
    loss.backward()
    assert abs(ours.pop("loss").item() - loss.item()) <= 1e-5 * loss.item()
    theirs = dict(model.named_parameters())
    ours = fuse_experts(ours, theirs)
    assert set(ours) == set(theirs)
    for key, gradient in ours.items():
        expected = theirs[key].grad
        assert (gradient - expected).norm() <= 1e-4 * expected.norm(), key


@pytest.mark.parametrize("name", CASES)
def test_a_fresh_head_on_a_language_model_opens_in_transformers(name, tmp_path):
    language = make_folder(name, tmp_path / "language")
    save(tmp_path / "language", tmp_path / "fresh", score_seed=11)
    model = open_score_model(tmp_path / "fresh")
    assert model.config.num_labels == 1
    body = dict(language.model.named_parameters())
    for key, tensor in model.model.named_parameters():
        assert torch.equal(tensor, body[key]), key
    hidden = language.config.hidden_size
    head = model.score.weight
    assert head.shape == (1, hidden)
    # Deviation 1 / (h + 1), within three standard errors of a deviation of h samples.
    assert abs(head.double().square().mean().sqrt().item() * (hidden + 1) - 1) < 3 / (2 * hidden) ** 0.5
    tokens = sequences(language.config.vocab_size)[3:5]
    ours = drive("values", tmp_path / "fresh", tokens, tmp_path)
    for i, ids in enumerate(tokens):
        with torch.no_grad():
            score = model(torch.tensor([ids])).logits[0, 0].item()
        scale = ours[str(i)].abs().max().item()
        assert abs(ours[str(i)][-1].item() - score) <= 2e-5 * scale


def test_all_levels_of_the_kernels_give_the_same_bits(tmp_path, monkeypatch):
    _, folder = score_folder("qwen2", tmp_path)
    tokens = sequences(300)[2:7]
    for command in ("values", "value_gradients"):
        widest = drive(command, folder, tokens, tmp_path)
        monkeypatch.setenv("TROUPE_ISA", "reference")
        reference = drive(command, folder, tokens, tmp_path)
        monkeypatch.delenv("TROUPE_ISA")
        assert all(torch.equal(widest[key], reference[key]) for key in widest)


def test_a_score_model_travels_through_troupe_and_back(tmp_path):
    model, folder = score_folder("qwen2", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config.update(mean=-1.5, std=0.75)  # OpenRLHF's keys
    (folder / "config.json").write_text(json.dumps(config))
    save(folder, tmp_path / "saved", score_seed=0)
    again = open_score_model(tmp_path / "saved")
    assert (again.config.mean, again.config.std) == (-1.5, 0.75)
    tensors = dict(again.named_parameters())
    for key, tensor in model.named_parameters():
        assert torch.equal(tensor, tensors[key]), key
