"""Model folders travel both ways between Troupe and transformers.

Source: transformers save_pretrained / from_pretrained. Tolerance: none; weights are equal bit for bit
(after bf16 rounding where that is the storage), so are the logits that transformers computes.
"""

import json

import pytest
import torch
from model_cases import (CASES, compare_all, drive, load_reference, make_folder, save, sequence,
                         sequences)
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


@pytest.mark.parametrize("name", CASES)
def test_what_troupe_saves_transformers_opens_with_equal_logits(name, tmp_path):
    make_folder(name, tmp_path / "model")
    save(tmp_path / "model", tmp_path / "saved")
    compare_all(load_reference(tmp_path / "model"), load_reference(tmp_path / "saved"))


@pytest.mark.parametrize("name", CASES)
def test_the_names_in_the_file_are_those_that_transformers_writes(name, tmp_path):
    make_folder(name, tmp_path / "model")
    save(tmp_path / "model", tmp_path / "saved")
    theirs = load_file(tmp_path / "model" / "model.safetensors")
    ours = load_file(tmp_path / "saved" / "model.safetensors")
    assert {k: t.shape for k, t in ours.items()} == {k: t.shape for k, t in theirs.items()}


@pytest.mark.parametrize("name", ["mixtral", "qwen2_moe", "qwen3_moe"])
def test_experts_in_fused_tensors_are_read(name, tmp_path):
    make_folder(name, tmp_path / "model")
    make_folder(name, tmp_path / "fused", save_original_format=False)
    assert any(k.endswith("experts.gate_up_proj")
               for k in load_file(tmp_path / "fused" / "model.safetensors"))
    tokens = sequences(300)[:4]
    plain = drive("logits", tmp_path / "model", tokens, tmp_path)
    fused = drive("logits", tmp_path / "fused", tokens, tmp_path)
    assert all(torch.equal(plain[key], fused[key]) for key in plain)


def test_shards_that_transformers_wrote_load(tmp_path):
    make_folder("plain", tmp_path / "sharded", max_shard_size="100KB")
    make_folder("plain", tmp_path / "single")
    assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 2
    tokens = sequences(300)[:4]
    sharded = drive("logits", tmp_path / "sharded", tokens, tmp_path)
    single = drive("logits", tmp_path / "single", tokens, tmp_path)
    assert all(torch.equal(sharded[key], single[key]) for key in single)


def test_shards_that_troupe_wrote_open_in_transformers(tmp_path):
    make_folder("qwen2", tmp_path / "model")
    save(tmp_path / "model", tmp_path / "saved", shard_bytes=100_000)
    assert len(list((tmp_path / "saved").glob("*.safetensors"))) > 2
    compare_all(load_reference(tmp_path / "model"), load_reference(tmp_path / "saved"))


def test_bf16_is_rounded_as_torch_rounds(tmp_path):
    model = make_folder("plain", tmp_path / "model")
    save(tmp_path / "model", tmp_path / "saved", dtype="bf16")
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "saved")
    assert saved.dtype == torch.bfloat16
    for (name, a), (_, b) in zip(model.named_parameters(), saved.named_parameters()):
        assert torch.equal(a.to(torch.bfloat16), b), name


def test_bf16_of_odd_numbers_is_rounded_as_torch_rounds(tmp_path):
    """Ties, numbers beside them, subnormals, zeros, and what rounds to infinity."""
    model = make_folder("plain", tmp_path / "model")
    high = torch.tensor([0x0000, 0x0001, 0x007f, 0x0080, 0x3f80, 0x3f81, 0x7f7f, 0xff7f, 0x8000, 0x8001],
                        dtype=torch.int64)
    low = torch.tensor([0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff], dtype=torch.int64)
    bits = (high[:, None] * 65536 + low).flatten()
    odd = torch.where(bits >= 2**31, bits - 2**32, bits).to(torch.int32).view(torch.float32)
    with torch.no_grad():
        embedding = model.get_input_embeddings().weight
        embedding.view(-1)[:odd.numel()] = odd
    model.save_pretrained(tmp_path / "odd")
    save(tmp_path / "odd", tmp_path / "saved", dtype="bf16")
    name = "model.embed_tokens.weight"
    ours = load_file(tmp_path / "saved" / "model.safetensors")[name]
    theirs = embedding.detach().to(torch.bfloat16)
    assert torch.equal(ours.view(torch.int16), theirs.view(torch.int16))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_weights_are_read(dtype, tmp_path):
    make_folder("plain", tmp_path / "model").to(dtype).save_pretrained(tmp_path / "half")
    model = load_reference(tmp_path / "half")
    tokens = [sequence(300, 40)]
    ours = drive("logits", tmp_path / "half", tokens, tmp_path)["0"]
    with torch.no_grad():
        theirs = model(torch.tensor(tokens)).logits[0]
    assert (ours - theirs).abs().max() <= 2e-5 * theirs.abs().max()


def test_the_older_spelling_of_rope_is_read(tmp_path):
    make_folder("llama3", tmp_path / "model")
    tokens = [sequence(300, 200)]
    new = drive("logits", tmp_path / "model", tokens, tmp_path)["0"]
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters.pop("rope_theta")
    config["rope_scaling"] = parameters
    path.write_text(json.dumps(config))
    assert torch.equal(new, drive("logits", tmp_path / "model", tokens, tmp_path)["0"])
