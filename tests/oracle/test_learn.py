"""The learning side against outside programs, through tests/oracle/learn_driver.cpp.

Sources: TRL 1.16 (`GRPOTrainer._compute_loss` itself, run on a stub of its trainer; `nanstd` of
trl.trainer.utils), torch.optim.AdamW and clip_grad_norm_, transformers' Llama in float64, and for what
TRL does not have a few lines of NumPy or torch that state the formula. Options are set so that both
sides compute the same thing: TRL adds 1e-4 to the n-1 deviation of a group as we do, measures the KL
with k3 and does not weigh it, and has no clamp of the log-ratio (no ratio here comes near e^20).
"""

import collections
import functools
import json
import math
import os
import pathlib
import subprocess
import types

import numpy as np
import pytest
import torch
import transformers
from trl import GRPOTrainer
from trl.trainer.utils import nanstd

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))


@functools.cache
def driver():
    """One process for all tests; it ends when its stdin is closed with ours."""
    pipe = subprocess.PIPE
    return subprocess.Popen([BUILD / "bin" / "learn_driver"], stdin=pipe, stdout=pipe, text=True)


def drive(request):
    driver().stdin.write(json.dumps(request) + "\n")
    driver().stdin.flush()
    line = driver().stdout.readline()
    assert line, "the driver has died"
    answer = json.loads(line)
    assert "ok" in answer, answer
    return answer["ok"]


def close(ours, theirs, relative, what=""):
    """Largest difference over the largest magnitude of the peer's values."""
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    assert ours.shape == theirs.shape, what
    worst = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)
    assert worst <= relative, f"{what}: {worst:.3g} relative, allowed {relative:.3g}"


# ---- advantages ------------------------------------------------------------------------------------


def groups_of_scores(generator, samples):
    """Scores around 0, some beyond the clip at +-10; and one group of equal scores."""
    scores = torch.randn(6, samples, generator=generator, dtype=torch.float64) * 6
    scores[2] = 0.1
    lengths = torch.randint(1, 30, (6, samples), generator=generator)
    return scores, lengths


def our_advantages(kind, scores, lengths):
    groups = [{"scores": s.tolist(), "lengths": n.tolist()} for s, n in zip(scores, lengths)]
    answer = drive({"op": "advantages", "algo": {"advantage": kind}, "updates": [groups]})[0]
    for group in answer["advantages"]:
        for sample in group:
            assert len(set(sample)) == 1, "one advantage for all tokens of a sample"
    return [[sample[0] for sample in group] for group in answer["advantages"]]


@pytest.mark.parametrize("samples", [2, 4, 8])
def test_grpo_advantage_is_trls(samples):
    """grpo_trainer.py, sum_then_normalize with scale_rewards "group": mean, nanstd, + 1e-4.

    Within 1e-7: nanstd takes n / (n - 1) in float32 whatever its input.
    """
    scores, lengths = groups_of_scores(torch.Generator().manual_seed(samples), samples)
    rewards = scores.clamp(-10, 10)
    expected = (rewards - rewards.mean(1, keepdim=True)) / (nanstd(rewards, dim=1, keepdim=True) + 1e-4)
    expected[2] = 0
    close(our_advantages("grpo", scores, lengths), expected, 1e-7)
    assert our_advantages("grpo", scores, lengths)[2] == [0.0] * samples


def test_other_group_steps_are_the_formulas():
    """NumPy. rloo: rloo_trainer.py's (sum - own) / (n - 1); dr_grpo: scale_rewards "none"; the
    reinforce baseline whitened over tokens with the population deviation, as OpenRLHF's masked mean."""
    scores, lengths = groups_of_scores(torch.Generator().manual_seed(3), 4)
    r, n = np.clip(scores.numpy(), -10, 10), lengths.numpy()
    close(our_advantages("rloo", scores, lengths), r - (r.sum(1, keepdims=True) - r) / 3, 1e-12)
    centred = r - r.mean(1, keepdims=True)
    close(our_advantages("dr_grpo", scores, lengths), centred, 1e-12)
    baseline = (n * r).sum(1, keepdims=True) / n.sum(1, keepdims=True)  # verl's opo
    close(our_advantages("opo", scores, lengths)[:2], (r - baseline)[:2], 1e-12)
    # gpg's paper: B / (B - M), M samples of groups whose scores are all equal (verl counts scores of 0)
    close(our_advantages("gpg", scores, lengths), centred * 6 / 5, 1e-12)
    right = np.abs(r)  # maxrl's paper: rewards of 0 and more
    close(our_advantages("maxrl", torch.tensor(right), lengths)[3:], (right / right.mean(1, keepdims=True) - 1)[3:],
          1e-12)
    per_token = np.repeat(centred.ravel(), n.ravel())
    white = (centred - per_token.mean()) / np.sqrt(max(per_token.var(), 1e-8))
    close(our_advantages("reinforce_baseline", scores, lengths), white, 1e-12)


# ---- losses ----------------------------------------------------------------------------------------


class StubAccelerator:
    num_processes = 1
    sync_gradients = True

    def gather(self, x):
        return x

    gather_for_metrics = gather

    def reduce(self, x, reduction):
        return x


def trl_trainer(logps_and_entropies, loss_type, beta, eps, entropy_coef=0.0, correction=False):
    """What `GRPOTrainer._compute_loss` reads of its trainer; one micro-batch in one step."""
    return types.SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *args, **kwargs: (*logps_and_entropies, None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        beta=beta,
        args=types.SimpleNamespace(use_bias_correction_kl=False, delta=None, steps_per_generation=1),
        loss_type=loss_type,
        epsilon_low=eps[0],
        epsilon_high=eps[1],
        use_vllm=correction,
        vllm_importance_sampling_correction=correction,
        model=types.SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1,
        accelerator=StubAccelerator(),
        _entropy_bonus_enabled=entropy_coef != 0,
        use_adaptive_entropy=False,
        entropy_coef=entropy_coef,
        _metrics={"train": collections.defaultdict(list)},
    )


Batch = collections.namedtuple("Batch", "mask advantages logprobs anchor behaviour reference entropy")


def random_batch(seed):
    """Five samples of 2 to 9 tokens; ratios on both sides of the clip, corrections up to e^2."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([9, 2, 5, 7, 3])
    mask = (torch.arange(9)[None] < lengths[:, None]).double()
    noise = lambda scale: scale * torch.randn(5, 9, generator=generator, dtype=torch.float64)
    anchor = -2 + noise(0.8)
    return Batch(
        mask, torch.tensor([1.2, -0.7, 0.3, -1.9, 0.8], dtype=torch.float64), anchor + noise(0.3), anchor,
        anchor + noise(0.7), anchor + noise(0.3), 2 + noise(0.2),
    )


def trl_loss(batch, loss_type, beta=0.0, eps=(0.2, 0.2), entropy_coef=0.0, correction_max=None, anchor=True):
    logps = batch.logprobs.clone().requires_grad_(True)
    entropy = batch.entropy.clone().requires_grad_(True)
    trainer = trl_trainer((logps, entropy), loss_type, beta, eps, entropy_coef, correction_max is not None)
    ids = torch.zeros_like(batch.mask, dtype=torch.long)
    inputs = {
        "prompt_ids": ids, "prompt_mask": batch.mask, "completion_ids": ids, "completion_mask": batch.mask,
        "advantages": batch.advantages, "ref_per_token_logps": batch.reference,
        "num_items_in_batch": batch.mask.sum(),
    }
    if anchor:
        inputs["old_per_token_logps"] = batch.anchor
    if correction_max is not None:
        inputs["importance_sampling_ratio"] = (batch.anchor - batch.behaviour).exp().clamp(max=correction_max)
    loss = GRPOTrainer._compute_loss(trainer, None, inputs)
    loss.backward()
    return loss.item(), logps.grad, entropy.grad, trainer._metrics["train"]


def our_loss(batch, algo, anchor=True):
    rows = batch.mask.bool()
    tokens = batch.mask.sum()
    if algo["reducer"] == "token_mean":
        weight = torch.ones_like(batch.mask) / tokens
    else:
        weight = torch.ones_like(batch.mask) / (5 * batch.mask.sum(1, keepdim=True))
    column = lambda x: x[rows].tolist()
    columns = {
        "advantage": column(batch.advantages[:, None].expand(5, 9)), "weight": column(weight),
        "behaviour": column(batch.behaviour), "reference": column(batch.reference),
        "logprobs": column(batch.logprobs), "entropy": column(batch.entropy),
        "anchor": column(batch.anchor) if anchor else [],
    }
    return drive({"op": "loss", "algo": algo, "tokens": columns})


@pytest.mark.parametrize("loss_type, reducer", [("dapo", "token_mean"), ("grpo", "sample_mean")])
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("eps", [(0.2, 0.2), (0.2, 0.28)])
def test_ppo_loss_and_gradient_are_trls(loss_type, reducer, beta, eps):
    for seed in range(3):
        batch = random_batch(seed)
        loss, gradient, _, metrics = trl_loss(batch, loss_type, beta, eps)
        ours = our_loss(batch, {
            "objective": "ppo", "reducer": reducer, "kl_coef": beta, "kl_estimator": "k3",
            "eps_clip_low": eps[0], "eps_clip_high": eps[1],
        })
        close(ours["loss"], loss, 1e-12, "loss")
        close(ours["logprobs"], gradient[batch.mask.bool()], 1e-12, "gradient")
        for ours_name, trl_name in [("policy/clipfrac", "region"), ("policy/clipfrac_low", "low"),
                                    ("policy/clipfrac_high", "high")]:
            # TRL's masked mean is in float32.
            close(ours["metrics"][ours_name], metrics[f"clip_ratio/{trl_name}_mean"][0], 1e-6, ours_name)
        assert ours["metrics"]["policy/clipfrac"] > 0.1
        if beta:
            close(ours["metrics"]["kl/ref"], metrics["kl"][0], 1e-6, "kl")


def test_entropy_bonus_is_trls():
    batch = random_batch(1)
    loss, gradient, entropy_gradient, metrics = trl_loss(batch, "dapo", entropy_coef=0.03)
    ours = our_loss(batch, {"objective": "ppo", "reducer": "token_mean", "entropy_coef": 0.03})
    close(ours["loss"], loss, 1e-12, "loss")
    close(ours["logprobs"], gradient[batch.mask.bool()], 1e-12, "gradient")
    close(ours["entropy"], entropy_gradient[batch.mask.bool()], 1e-12, "entropy gradient")
    close(ours["metrics"]["policy/entropy"], metrics["entropy"][0], 1e-6)


@pytest.mark.parametrize("loss_type, reducer", [("dapo", "token_mean"), ("grpo", "sample_mean")])
@pytest.mark.parametrize("anchor", [True, False])
def test_decoupled_loss_and_gradient_are_trls_truncated_correction(loss_type, reducer, anchor):
    """TRL's token_truncate mode of the sampler correction, cap 2, on top of the clipped ratio."""
    for seed in range(3):
        batch = random_batch(seed)
        if not anchor:  # l_p = sg(l): TRL takes the correction at the same place
            batch = batch._replace(anchor=batch.logprobs)
        loss, gradient, _, _ = trl_loss(batch, loss_type, correction_max=2.0, anchor=anchor)
        ours = our_loss(batch, {"objective": "decoupled", "reducer": reducer, "correction_max": 2.0}, anchor)
        close(ours["loss"], loss, 1e-12, "loss")
        close(ours["logprobs"], gradient[batch.mask.bool()], 1e-12, "gradient")
        assert 0.05 < ours["metrics"]["async/masked_share"] < 0.5


@pytest.mark.parametrize("bound", [1000.0, 1.3])
@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_kl_weighted_by_policy_over_behaviour(estimator, bound):
    """TRL has no detached weight on the KL: a few lines of torch state the formula instead."""
    batch = random_batch(4)
    l = batch.logprobs.clone().requires_grad_(True)
    d = l - batch.reference
    kl = 0.5 * d**2 if estimator == "k2" else torch.exp(-d) - 1 + d
    r = torch.exp(l - batch.anchor)
    a = batch.advantages[:, None]
    clipped = torch.min(r * a, r.clamp(0.8, 1.2) * a)
    objective = torch.exp(batch.anchor - batch.behaviour).clamp(max=bound) * clipped
    weight = torch.exp(l - batch.behaviour).detach()
    assert (weight * batch.mask).max() > 1.3, "the lower bound must bite"
    per_token = 0.1 * weight.clamp(max=bound) * kl - objective
    loss = (per_token * batch.mask).sum() / batch.mask.sum()
    loss.backward()
    ours = our_loss(batch, {
        "objective": "decoupled", "reducer": "token_mean", "kl_coef": 0.1, "kl_estimator": estimator,
        "correction_max": bound,
    })
    close(ours["loss"], loss.item(), 1e-12, "loss")
    close(ours["logprobs"], l.grad[batch.mask.bool()], 1e-12, "gradient")


# ---- optimiser -------------------------------------------------------------------------------------


@pytest.mark.parametrize("betas", [(0.9, 0.95), (0.9, 0.999)])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adamw_is_torchs_over_twenty_steps(betas, weight_decay):
    """Ours in float32 against torch in float64, within 1e-6 relative at every step.

    The parameters start small, so that what is compared are the moves.
    """
    generator = torch.Generator().manual_seed(7)
    start = torch.randn(200, generator=generator) * 1e-4
    grads = [torch.randn(200, generator=generator) * 10 ** (step % 3 - 2) for step in range(20)]
    rates = [1e-3 * (1 + step % 4) for step in range(20)]
    ours = drive({
        "op": "optimizer", "params": start.tolist(), "grads": [g.tolist() for g in grads], "lr": rates,
        "optim": {"beta1": betas[0], "beta2": betas[1], "eps": 1e-8, "weight_decay": weight_decay},
    })
    param = torch.nn.Parameter(start.double())
    optimizer = torch.optim.AdamW([param], betas=betas, eps=1e-8, weight_decay=weight_decay)
    for step in range(20):
        optimizer.param_groups[0]["lr"] = rates[step]
        param.grad = grads[step].double()
        optimizer.step()
        close(ours[step], param.detach(), 1e-6, f"step {step}")


@pytest.mark.parametrize("momentum, weight_decay", [(0.9, 0.0), (0.9, 0.1), (0.0, 0.01)])
def test_sgd_is_torchs(momentum, weight_decay):
    generator = torch.Generator().manual_seed(5)
    start = torch.randn(300, generator=generator)
    grads = [torch.randn(300, generator=generator) for _ in range(20)]
    rates = [1e-2 * (1 + step % 4) for step in range(20)]
    ours = drive({
        "op": "optimizer", "params": start.tolist(), "grads": [g.tolist() for g in grads], "lr": rates,
        "optim": {"kind": "sgd", "momentum": momentum, "weight_decay": weight_decay},
    })
    param = torch.nn.Parameter(start.double())
    optimizer = torch.optim.SGD([param], lr=1, momentum=momentum, weight_decay=weight_decay)
    for step in range(20):
        optimizer.param_groups[0]["lr"] = rates[step]
        param.grad = grads[step].double()
        optimizer.step()
        close(ours[step], param.detach(), 1e-6, f"step {step}")


@pytest.mark.parametrize("kind, tolerance", [("adamw_bf16", 0.05), ("adamw_8bit", 0.25)])
def test_moments_in_fewer_bits_stay_near_torchs_adamw(kind, tolerance):
    """No peer rounds as we do. Each weight's way after 50 steps, as a share of the mean way of torch's AdamW."""
    generator = torch.Generator().manual_seed(6)
    start = torch.randn(2000, generator=generator)
    drift = torch.randn(2000, generator=generator)
    grads = [drift + 0.5 * torch.randn(2000, generator=generator) for _ in range(50)]
    ours = drive({
        "op": "optimizer", "params": start.tolist(), "grads": [g.tolist() for g in grads], "lr": [1e-3] * 50,
        "optim": {"kind": kind, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01},
    })
    param = torch.nn.Parameter(start.double())
    optimizer = torch.optim.AdamW([param], lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    for grad in grads:
        param.grad = grad.double()
        optimizer.step()
    way = (param.detach() - start.double()).abs().mean()
    off = (torch.tensor(ours[-1]).double() - param.detach()).abs()
    assert 0 < off.mean() / way < tolerance / 3
    assert off.max() / way < tolerance


@pytest.mark.parametrize("ours, peers, settings, extra", [
    ("cosine", "cosine_with_min_lr", {"lr_min_ratio": 0.1}, {"min_lr_rate": 0.1}),
    ("linear", "linear", {"lr_min_ratio": 0}, {}),
    ("constant", "constant_with_warmup", {}, {}),
    ("wsd", "warmup_stable_decay", {"lr_min_ratio": 0, "lr_decay_ratio": 0.25}, {"num_decay_steps": 10}),
    ("restarts", "cosine_with_restarts", {"lr_min_ratio": 0, "lr_cycles": 3}, {"num_cycles": 3}),
])
def test_schedules_are_those_of_transformers_one_step_later(ours, peers, settings, extra):
    """transformers gives step 0 the rate 0; ours starts at its step 1."""
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=3e-4)
    total, warmup = 40, math.ceil(0.1 * 40)
    scheduler = transformers.get_scheduler(
        peers, optimizer, num_warmup_steps=warmup, num_training_steps=total, scheduler_specific_kwargs=extra,
    )
    expected = []
    for _ in range(total):
        optimizer.step()
        scheduler.step()
        expected.append(optimizer.param_groups[0]["lr"])
    optim = {"lr": 3e-4, "warmup_ratio": 0.1, "schedule": ours, **settings}
    close(drive({"op": "schedule", "optim": optim, "total_steps": total}), expected, 1e-9)
