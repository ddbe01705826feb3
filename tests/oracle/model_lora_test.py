"""Adapters travel both ways between Troupe and PEFT, and mean the same.

Source: the `peft` package (PeftModel, LoraConfig, save_pretrained, merge_and_unload) on transformers.
Convention: W + (alpha / r) B A. Tolerance: logits 2e-5 of the largest, gradients 1e-4 relative L2 by
tensor; what Troupe merges equals what it trained on exactly.
"""

import json
import re
import subprocess
import warnings
from random import Random

import pytest
import torch
from model_cases import (BUILD, DRIVER, compare_all, drive, load_reference, logits_difference,
                         make_folder, sequences)
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

TROUPE = BUILD / "troupe"


def our_adapter(base, out, rank, alpha, target, seed=5):
    subprocess.run([DRIVER, "adapter", base, out, str(rank), str(alpha), target, str(seed)],
                   check=True, timeout=60)


def merge(base, adapter, out, *flags):
    return subprocess.run([TROUPE, "merge-lora", "--model", base, "--adapter", adapter, "--output",
                           out, *flags], timeout=60, capture_output=True, text=True)


def reference_logits_differ(model, folder, tmp_path):
    tokens = sequences(model.config.vocab_size)[3:7]
    return logits_difference(model, drive("logits", folder, tokens, tmp_path), tokens)


@pytest.mark.parametrize("name, target", [("plain", "all-linear"), ("qwen2", "q_proj,v_proj"),
                                          ("qwen2", "layers.1.mlp.down_proj,k_proj"),
                                          ("phi3", "all-linear"), ("gemma2", "o_proj,up_proj"),
                                          ("qwen3", "all-linear"),
                                          ("mixtral", "all-linear")])
def test_peft_opens_what_troupe_writes(name, target, tmp_path):
    make_folder(name, tmp_path / "base")
    our_adapter(tmp_path / "base", tmp_path / "adapter", 5, 7.5, target)
    base = load_reference(tmp_path / "base")
    peft = PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    # Nothing is missing and nothing is left over: PEFT's own tensors are the file's.
    saved = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    theirs = {k.replace(".default", ""): v for k, v in peft.state_dict().items() if "lora_" in k}
    assert set(theirs) == set(saved)
    assert all(torch.equal(saved[k], theirs[k]) for k in saved)
    assert reference_logits_differ(peft, tmp_path / "adapter.merged", tmp_path) <= 2e-5
    plain = load_reference(tmp_path / "base")
    assert reference_logits_differ(plain, tmp_path / "adapter.merged", tmp_path) > 1e-2


PATTERNS = [r".*\.(q|v)_proj", r".*self_attn\..*", r"model\.layers\.[01]\.mlp\.(?:up|down)_proj",
            r"^(?:(?!mlp).)*\.(?:q_proj|k_proj|up_proj)$",
            # As Unsloth writes them.
            r"(?:.*?(?:language|text).*?(?:self_attn|attn|mlp).*?(?:k_proj|v_proj).*?)|"
            r"(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn|mlp)\.(?:(?:q_proj|down_proj)))"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_modules_by_a_regular_expression(pattern, tmp_path):
    """The whole adapter is taken, one that lacks a module is refused, which one PEFT decides."""
    make_folder("plain", tmp_path / "base")
    model = get_peft_model(load_reference(tmp_path / "base"),
                           LoraConfig(r=2, task_type="CAUSAL_LM", target_modules=pattern))
    model.save_pretrained(tmp_path / "adapter")
    file, config = (tmp_path / "adapter" / name for name in ("adapter_model.safetensors", "adapter_config.json"))
    assert json.loads(config.read_text())["target_modules"] == pattern
    done = merge(tmp_path / "base", tmp_path / "adapter", tmp_path / "merged", "--any-base")
    assert done.returncode == 0, done.stderr
    whole = load_file(file)
    gone = sorted(whole)[-1].split(".lora_")[0]
    save_file({key: tensor for key, tensor in whole.items() if not key.startswith(gone)}, file)
    refused = merge(tmp_path / "base", tmp_path / "adapter", tmp_path / "other", "--any-base")
    assert refused.returncode == 4 and gone.removeprefix("base_model.model.") in refused.stderr, refused.stderr


def random_pattern(random, depth=3):
    parts = []
    for _ in range(random.randint(1, 4)):
        kind = random.randint(0, 11 if depth else 5)
        if kind == 0:
            part = random.choice([".", r"\d", r"\w", r"\D", r"\.", r"\W", r"\S", "_"])
        elif kind == 1:
            part = "[" + random.choice(["", "^"]) + random.choice(["a-c", "]ab", "a-", r"\d_", "b.", "0-9a"]) + "]"
        elif kind == 2:
            part = random.choice(["^", "$", r"\b", r"\B", r"\A", r"\Z", "{", "a{,", "{}", "]", "}"])
        elif kind < 6:
            part = random.choice(["a", "b", "c", "ab", "0", ".", "_"])
        else:
            head = random.choice(["(", "(?:", "(?=", "(?!", "(?:", "("])
            part = head + "|".join(random_pattern(random, depth - 1) for _ in range(random.randint(1, 3))) + ")"
        if random.random() < 0.35:
            part += random.choice(["*", "+", "?", "{2}", "{1,}", "{,2}", "{0,3}", "*?", "+?", "{1,2}?", "??"])
        parts.append(part)
    return "".join(parts)


def test_expressions_match_as_pythons(tmp_path):
    random = Random(7)
    items, expected = [], []
    while len(items) < 4000:
        pattern = random.choice(["", "", "", "(?i)", "(?s)"]) + random_pattern(random)
        names = ["".join(random.choices("abcAB0_.", k=random.randint(1, 9))) for _ in range(12)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                compiled = re.compile(pattern)
            except re.error:
                compiled = None
        items.append([pattern, names])
        expected.append(None if compiled is None else
                        "".join("01"[compiled.fullmatch(name) is not None] for name in names))
    (tmp_path / "items.json").write_text(json.dumps(items))
    lines = subprocess.run([DRIVER, "match", tmp_path / "items.json"], check=True, timeout=60,
                           capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == len(items)
    for (pattern, names), line, right in zip(items, lines, expected):
        if right is None:
            assert line.startswith("refused: "), (pattern, line)
        else:
            assert line == right, (pattern, names, line, right)
    assert sum("1" in (right or "") for right in expected) > 300


@pytest.mark.parametrize("options", [dict(target_modules="all-linear"),
                                     dict(target_modules=["q_proj", "up_proj"], use_rslora=True)])
def test_troupe_opens_what_peft_saves(options, tmp_path):
    make_folder("qwen2_tied", tmp_path / "base")
    torch.manual_seed(4)
    model = get_peft_model(load_reference(tmp_path / "base"),
                           LoraConfig(r=6, lora_alpha=9, task_type="CAUSAL_LM", **options))
    with torch.no_grad():
        for key, tensor in model.named_parameters():
            if "lora_" in key:
                tensor.normal_(0.0, 0.15)
    model.save_pretrained(tmp_path / "adapter")
    done = merge(tmp_path / "base", tmp_path / "adapter", tmp_path / "merged")
    assert done.returncode == 0, done.stderr
    assert reference_logits_differ(model.eval(), tmp_path / "merged", tmp_path) <= 2e-5
    merged = dict(load_reference(tmp_path / "merged").named_parameters())
    for key, tensor in model.merge_and_unload().named_parameters():
        assert (merged[key] - tensor).abs().max() <= 2e-6 * tensor.abs().max(), key


def test_saving_and_merging_is_the_merge_that_ran(tmp_path):
    make_folder("plain", tmp_path / "base")
    our_adapter(tmp_path / "base", tmp_path / "adapter", 3, 16, "all-linear")
    done = merge(tmp_path / "base", tmp_path / "adapter", tmp_path / "merged")
    assert done.returncode == 0, done.stderr
    compare_all(load_reference(tmp_path / "adapter.merged"), load_reference(tmp_path / "merged"))


def test_what_peft_warns_of_as_missing_is_refused(tmp_path):
    """An adapter of which a part is missing, and one whose configuration names other modules."""
    make_folder("plain", tmp_path / "base")
    our_adapter(tmp_path / "base", tmp_path / "adapter", 3, 6, "q_proj")
    file, config = (tmp_path / "adapter" / name for name in ("adapter_model.safetensors", "adapter_config.json"))
    whole, named = load_file(file), json.loads(config.read_text())
    part = {key: tensor for key, tensor in whole.items() if ".layers.1." not in key}
    assert 0 < len(part) < len(whole)
    for tensors, targets in ((part, ["q_proj"]), (whole, ["q_proj", "v_proj"])):
        save_file(tensors, file)
        config.write_text(json.dumps(named | {"target_modules": targets}))
        with pytest.warns(UserWarning, match="missing adapter keys"):
            PeftModel.from_pretrained(load_reference(tmp_path / "base"), tmp_path / "adapter")
        refused = merge(tmp_path / "base", tmp_path / "adapter", tmp_path / "merged", "--any-base")
        assert refused.returncode == 4 and "it has no tensors of model.layers." in refused.stderr, refused.stderr
    save_file(whole, file)
    config.write_text(json.dumps(named))
    assert merge(tmp_path / "base", tmp_path / "adapter", tmp_path / "merged", "--any-base").returncode == 0


def test_gradients_are_pefts(tmp_path, monkeypatch):
    make_folder("qwen2", tmp_path / "base")
    our_adapter(tmp_path / "base", tmp_path / "adapter", 5, 7.5, "all-linear")
    model = PeftModel.from_pretrained(load_reference(tmp_path / "base"), tmp_path / "adapter",
                                      is_trainable=True).double()
    tokens = [s for s in sequences(model.config.vocab_size) if len(s) > 1][:6]
    request = tmp_path / "request.json"
    request.write_text(str({"sequences": tokens}).replace("'", '"'))
    subprocess.run([DRIVER, "adapter_gradients", tmp_path / "base", request,
                    tmp_path / "out.safetensors", tmp_path / "adapter"], check=True, timeout=60)
    ours = load_file(tmp_path / "out.safetensors")
    monkeypatch.setenv("TROUPE_ISA", "reference")
    subprocess.run([DRIVER, "adapter_gradients", tmp_path / "base", request,
                    tmp_path / "reference.safetensors", tmp_path / "adapter"], check=True,
                   timeout=60)
    plain = load_file(tmp_path / "reference.safetensors")
    assert all(torch.equal(ours[key], plain[key]) for key in plain)
    total = sum(len(s) - 1 for s in tokens)
    loss = 0.0
    for ids in tokens:
        part = model(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
        part = -part.gather(1, torch.tensor(ids[1:])[:, None]).sum() / total
        part.backward()
        loss += part.item()
    assert abs(ours.pop("loss").item() - loss) <= 1e-5 * loss
    theirs = {k.replace(".default", "").removeprefix("base_model.model."): p.grad
              for k, p in model.named_parameters() if p.requires_grad}
    assert set(ours) == set(theirs)
    for key, gradient in ours.items():
        assert (gradient - theirs[key]).norm() <= 1e-4 * theirs[key].norm(), key


def test_a_reward_models_adapter_brings_its_head(tmp_path):
    make_folder("qwen2", tmp_path / "base")
    model = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "base", num_labels=1, dtype=torch.float32, attn_implementation="eager")
    torch.manual_seed(4)
    model = get_peft_model(model, LoraConfig(r=4, task_type="SEQ_CLS", target_modules="all-linear"))
    with torch.no_grad():
        for key, tensor in model.named_parameters():
            if tensor.requires_grad:
                tensor.normal_(0.0, 0.2)
    model.eval().save_pretrained(tmp_path / "adapter")
    done = merge(tmp_path / "base", tmp_path / "adapter", tmp_path / "merged")
    assert done.returncode == 0, done.stderr
    merged = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "merged", dtype=torch.float32, attn_implementation="eager").eval()
    for ids in sequences(300)[3:6]:
        with torch.no_grad():
            ours, theirs = merged(torch.tensor([ids])).logits, model(torch.tensor([ids])).logits
        assert (ours - theirs).abs() <= 2e-5 * max(1.0, theirs.abs().item())


def test_an_adapter_of_another_model_is_refused_by_name(tmp_path):
    make_folder("plain", tmp_path / "base")
    make_folder("head_dim_20", tmp_path / "narrow")
    make_folder("large_eps", tmp_path / "other")  # the same shapes, other weights
    our_adapter(tmp_path / "base", tmp_path / "adapter", 3, 16, "q_proj")
    shape = merge(tmp_path / "narrow", tmp_path / "adapter", tmp_path / "out")
    assert shape.returncode == 4
    assert "q_proj.lora_A.weight has shape [3, 64] where this model has [rank, 60]" in shape.stderr
    weights = merge(tmp_path / "other", tmp_path / "adapter", tmp_path / "out")
    assert weights.returncode == 4 and "was trained on other weights than these" in weights.stderr
    assert not (tmp_path / "out").exists()
    forced = merge(tmp_path / "other", tmp_path / "adapter", tmp_path / "out", "--any-base")
    assert forced.returncode == 0, forced.stderr
    nowhere = merge(tmp_path / "base", tmp_path / "base", tmp_path / "out2")
    assert nowhere.returncode == 2 and "it is not a PEFT adapter" in nowhere.stderr
