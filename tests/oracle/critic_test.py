"""The critic against transformers, torch and NumPy.

Sources outside this project: the forward is transformers' LlamaForSequenceClassification (its body and
its `score` layer, applied at every position); AdamW and the gradient norm clip are torch's; the clipped
value loss and the explained variance are written out in NumPy after Schulman et al. (2017) as TRL's PPO
trainer and OpenRLHF's ValueLoss have them: 0.5 * mean(max((V - G)^2, (V_old + clip(V - V_old) - G)^2)).
The convention for a value's place is ours (docs/algorithms.md): V_t is read at the position before y_t.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForSequenceClassification

BUILD = Path(os.environ.get("TROUPE_BUILD_DIR", Path(__file__).parents[2] / "build"))


def ask(request):
    done = subprocess.run([BUILD / "bin" / "critic_driver"], input=json.dumps(request) + "\n",
                          capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert "error" not in answer, answer
    return answer


def numpy_loss(values, old, returns, clip):
    squares = (values - returns) ** 2
    if clip == 0:
        return 0.5 * squares.mean(), 0
    held = (old + np.clip(values - old, -clip, clip) - returns) ** 2
    return 0.5 * np.maximum(squares, held).mean(), int((held > squares).sum())


@pytest.mark.parametrize("clip", [0.0, 0.1, 0.5])
def test_loss_and_gradient(clip):
    rng = np.random.default_rng(3)
    values, old, returns = rng.normal(size=(3, 200))
    answer = ask({"op": "loss", "clip": clip, "weight": 1 / 200, "values": values.tolist(),
                  "old": old.tolist(), "returns": returns.tolist()})
    loss, clipped = numpy_loss(values, old, returns, clip)
    assert answer["loss"] == pytest.approx(loss, rel=1e-12)
    assert answer["clipped"] == clipped
    assert answer["explained"] == pytest.approx(
        1 - np.var(returns - values) / np.var(returns), rel=1e-12)
    v = torch.tensor(values, requires_grad=True)
    squares = (v - torch.tensor(returns)) ** 2
    if clip > 0:
        o = torch.tensor(old)
        squares = torch.max(squares, (o + (v - o).clamp(-clip, clip) - torch.tensor(returns)) ** 2)
    (0.5 * squares.mean()).backward()
    np.testing.assert_allclose(answer["gradient"], v.grad.numpy(), rtol=1e-12, atol=1e-15)


def make_critic(folder):
    torch.manual_seed(5)
    config = LlamaConfig(
        hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, vocab_size=120, num_labels=1,
        initializer_range=0.2, pad_token_id=0, attn_implementation="eager")
    critic = LlamaForSequenceClassification(config).float().eval()
    critic.save_pretrained(folder)
    return critic


def make_groups():
    # Not token 0: to torch it is padding, whose embedding stays as it is.
    rng = np.random.default_rng(8)
    groups, returns = [], []
    for _ in range(4):
        prompt = rng.integers(1, 120, size=rng.integers(3, 15)).tolist()
        responses = [rng.integers(1, 120, size=rng.integers(1, 12)).tolist() for _ in range(3)]
        groups.append({"prompt": prompt, "responses": responses})
        returns.append([rng.normal(size=len(r)).astype(np.float32).tolist() for r in responses])
    return groups, returns


def torch_values(critic, groups):
    """[group][sample][token], each sample alone, at the position before the token."""
    result = []
    for group in groups:
        result.append([])
        for response in group["responses"]:
            ids = torch.tensor([group["prompt"] + response])
            hidden = critic.model(input_ids=ids).last_hidden_state
            values = critic.score(hidden)[0, :, 0]
            begin = len(group["prompt"]) - 1
            result[-1].append(values[begin:begin + len(response)])
    return result


def flat(lists):
    return torch.cat([torch.as_tensor(sample, dtype=torch.float64)
                      for group in lists for sample in group])


@pytest.mark.parametrize("clip,epochs,rows", [(0.5, 1, 4096), (0.05, 3, 64)])
def test_update_of_a_model(tmp_path, clip, epochs, rows):
    critic = make_critic(tmp_path / "critic")
    groups, returns = make_groups()
    answer = ask({"op": "update", "folder": str(tmp_path / "critic"), "out": str(tmp_path / "out"),
                  "lr": 3e-3, "max_norm": 1.0, "clip": clip, "epochs": epochs, "rows": rows,
                  "groups": groups, "returns": returns})
    with torch.no_grad():
        old = flat(torch_values(critic, groups))
    np.testing.assert_allclose(flat(answer["values"]), old, rtol=0, atol=2e-5)

    optimiser = torch.optim.AdamW(critic.parameters(), lr=3e-3, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=0.0)
    target = flat(returns)
    losses, norms, clipped = [], [], 0
    for _ in range(epochs):
        optimiser.zero_grad()
        v = flat_with_grad(torch_values(critic, groups))
        squares = (v - target) ** 2
        held = (old + (v - old).clamp(-clip, clip) - target) ** 2
        clipped += int((held > squares).sum())
        loss = 0.5 * torch.max(squares, held).mean()
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(critic.parameters(), 1.0)))
        losses.append(float(loss.detach()))
        optimiser.step()
    metrics = answer["metrics"]
    assert metrics["value/loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert metrics["value/grad_norm"] == pytest.approx(np.mean(norms), rel=1e-4)
    assert metrics["value/clipfrac"] == pytest.approx(clipped / (epochs * len(target)), abs=0.02)
    if clip == 0.05:
        assert clipped > 0
    explained = 1 - np.var((target - old).numpy()) / np.var(target.numpy())
    assert metrics["value/explained_var"] == pytest.approx(explained, rel=1e-4)
    ours = load_file(tmp_path / "out" / "model.safetensors")
    theirs = critic.state_dict()
    assert set(ours) == set(theirs)
    for name, tensor in theirs.items():
        # AdamW's first steps are lr times a sign: where a gradient is near nothing the sign is noise.
        off = (ours[name] - tensor).abs() > 2e-4
        assert off.float().mean() < 0.01, name


def flat_with_grad(lists):
    return torch.cat([sample.double() for group in lists for sample in group])
