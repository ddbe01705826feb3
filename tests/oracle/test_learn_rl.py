"""Estimators, objectives and corrections of reinforcement learning against outside programs.

Sources: TRL 1.16's own loss code (`GRPOTrainer._compute_loss` on a stub of its trainer, its OPSM mask,
its soft overlong reward), its sampler correction restated in two lines (it stands inside a method that
generates), and for what TRL does not have NumPy or torch written from the formula, with autograd for the
gradients: GAE (Schulman et al. 2016), V-trace (Espeholt et al. 2018), GSPO's KL-free ratio, TOPR (Roux et
al. 2025), A3PO, IcePop, geometric rejection, M2PO, DPO. Conventions that arithmetic cannot show are
stated in the test that holds them.
"""

import re
import subprocess

import numpy as np
import pytest
import torch
from trl import GRPOConfig, GRPOTrainer
from trl.rewards import get_soft_overlong_punishment

from test_learn import BUILD, close, drive, random_batch, trl_trainer

WHITE = 1e-12


# ---- advantages ------------------------------------------------------------------------------------


def whitened(rows, divide=True):
    flat = np.concatenate(rows)
    scale = 1 / np.sqrt(max(flat.var(), 1e-8)) if divide else 1.0
    return [(row - flat.mean()) * scale for row in rows]


def random_update(seed, groups=3, samples=2):
    rng = np.random.default_rng(seed)
    update, lengths = [], []
    for _ in range(groups):
        n = rng.integers(1, 9, samples)
        row = lambda scale, shift=0.0: [
            (shift + scale * rng.standard_normal(k)).astype(np.float32).astype(float).tolist() for k in n
        ]
        update.append({
            "scores": (3 * rng.standard_normal(samples)).tolist(), "lengths": n.tolist(),
            "values": row(1.0), "behaviour": row(0.5, -2), "scored": row(0.5, -2), "reference": row(0.5, -2),
        })
        lengths.append(n)
    return update


def by_sample(update, key):
    return [np.array(sample) for group in update for sample in group[key]]


def token_rewards(update, beta):
    """k1 of the policy at the update's start, off the reward of each token; R at the last."""
    scores = [score for group in update for score in group["scores"]]
    rewards = []
    for score, l_p, l_ref in zip(scores, by_sample(update, "scored"), by_sample(update, "reference")):
        r = -beta * np.clip(l_p - l_ref, -10, 10)
        r[-1] += np.clip(score, -10, 10)
        rewards.append(r)
    return rewards


def flat(table):
    return [np.array(sample) for group in table for sample in group]


@pytest.mark.parametrize("gamma, lam", [(1.0, 1.0), (0.97, 0.9), (0.9, 0.0)])
@pytest.mark.parametrize("beta", [0.0, 0.05])
def test_gae_is_numpys_sum(gamma, lam, beta):
    """A_t as the explicit sum over (gamma lambda)^k delta_{t+k}; V after the last token is 0."""
    update = random_update(1)
    advantages, targets = [], []
    for r, v in zip(token_rewards(update, beta), by_sample(update, "values")):
        delta = r + gamma * np.append(v[1:], 0) - v
        a = np.array([sum((gamma * lam) ** k * d for k, d in enumerate(delta[t:])) for t in range(len(r))])
        advantages.append(a)
        targets.append(a + v)
    algo = {"advantage": "gae", "gamma": gamma, "lambda": lam, "kl_coef": beta, "kl_in_loss": False,
            "kl_estimator": "k1"}
    ours = drive({"op": "advantages", "algo": algo, "updates": [update]})[0]
    close(np.concatenate(flat(ours["advantages"])), np.concatenate(whitened(advantages)), 1e-11, "advantages")
    close(np.concatenate(flat(ours["returns"])), np.concatenate(targets), 1e-6, "returns, in float32")


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 0.5)])
@pytest.mark.parametrize("gamma, lam", [(1.0, 1.0), (0.95, 0.9)])
def test_vtrace_is_the_papers_sum(bounds, gamma, lam):
    """v_s = V_s + sum_t gamma^(t-s) (prod_{i=s}^{t-1} c_i) delta_t, eq. 1, with c_i = lambda min(c, w_i) as its
    remark 2; the policy gradient's q_s = r_s + gamma (lambda v_{s+1} + (1 - lambda) V_{s+1}), without rho."""
    update = random_update(2)
    rho_max, c_max = bounds
    advantages, targets = [], []
    for r, v, l_p, l_mu in zip(token_rewards(update, 0), by_sample(update, "values"),
                               by_sample(update, "scored"), by_sample(update, "behaviour")):
        w, after = np.exp(l_p - l_mu), np.append(v[1:], 0)
        delta = np.minimum(rho_max, w) * (r + gamma * after - v)
        c = lam * np.minimum(c_max, w)
        vs = np.array([v[s] + sum(gamma ** (t - s) * np.prod(c[s:t]) * delta[t] for t in range(s, len(r)))
                       for s in range(len(r))])
        advantages.append(r + gamma * (lam * np.append(vs[1:], 0) + (1 - lam) * after) - v)
        targets.append(vs)
    algo = {"advantage": "vtrace", "gamma": gamma, "lambda": lam, "vtrace_rho_max": rho_max,
            "vtrace_c_max": c_max, "objective": "ppo"}
    ours = drive({"op": "advantages", "algo": algo, "updates": [update]})[0]
    close(np.concatenate(flat(ours["advantages"])), np.concatenate(whitened(advantages)), 1e-11, "advantages")
    close(np.concatenate(flat(ours["returns"])), np.concatenate(targets), 1e-6, "returns, in float32")


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
@pytest.mark.parametrize("divide", [True, False])
def test_reinforce_with_kl_in_the_reward(estimator, divide):
    """REINFORCE++: discounted rewards to go, KL token by token, whitened over all tokens."""
    update, beta, gamma = random_update(3), 0.1, 0.98
    rows = []
    for score, l_p, l_ref in zip([s for g in update for s in g["scores"]], by_sample(update, "scored"),
                                 by_sample(update, "reference")):
        d = np.clip(l_p - l_ref, -10, 10)
        r = -beta * {"k1": d, "k2": d**2 / 2, "k3": np.exp(-d) - 1 + d}[estimator]
        r[-1] += score
        rows.append(np.array([sum(gamma**k * x for k, x in enumerate(r[t:])) for t in range(len(r))]))
    algo = {"advantage": "reinforce", "gamma": gamma, "kl_coef": beta, "kl_in_loss": False,
            "kl_estimator": estimator, "whiten_std": divide}
    ours = drive({"op": "advantages", "algo": algo, "updates": [update]})[0]
    close(np.concatenate(flat(ours["advantages"])), np.concatenate(whitened(rows, divide)), 1e-11)


def test_soft_overlong_penalty_is_trls():
    """trl.rewards.get_soft_overlong_punishment, added to the score (reinforce without whitening's scale)."""
    longest, buffer = 20, 6
    lengths = list(range(1, 21))
    punish = get_soft_overlong_punishment(max_completion_len=longest, soft_punish_cache=buffer)
    penalty = np.array(punish([[0] * n for n in lengths]))
    algo = {"advantage": "dr_grpo", "overlong_tokens": buffer, "response_tokens_max": longest}
    ours = drive({"op": "advantages", "algo": algo, "updates": [[{"scores": [1.0] * 20, "lengths": lengths}]]})[0]
    first = np.array([sample[0] for sample in ours["advantages"][0]])
    close(first, penalty - penalty.mean(), 1e-12)
    assert penalty.min() == -1 and penalty.max() == 0


def test_running_normaliser_is_numpys():
    updates = [random_update(seed) for seed in range(3)]
    algo = {"advantage": "dr_grpo", "normalise_running": True}
    answers = drive({"op": "advantages", "algo": algo, "updates": updates})
    seen = []
    for update, answer in zip(updates, answers):
        seen += [score for group in update for score in group["scores"]]
        for group, ours in zip(update, answer["advantages"]):
            r = (np.array(group["scores"]) - np.mean(seen)) / np.std(seen)
            close([sample[0] for sample in ours], r - r.mean(), 1e-11)


# ---- losses ----------------------------------------------------------------------------------------


def weights_of(batch, reducer, constant=None):
    tokens = batch.mask.sum(1, keepdim=True)
    if reducer == "token_mean":
        return torch.ones_like(batch.mask) / batch.mask.sum()
    return torch.ones_like(batch.mask) / (len(batch.mask) * (tokens if reducer == "sample_mean" else constant))


def our_loss(batch, algo, constant=None, **columns):
    rows = batch.mask.bool()
    column = lambda x: x[rows].tolist()
    tokens = {
        "advantage": column(batch.advantages[:, None].expand_as(batch.mask)),
        "weight": column(weights_of(batch, algo.get("reducer", "token_mean"), constant)),
        "behaviour": column(batch.behaviour), "anchor": column(batch.anchor),
        "reference": column(batch.reference), "logprobs": column(batch.logprobs),
        "sample_ends": batch.mask.sum(1).cumsum(0).long().tolist(),
    }
    tokens.update({name: column(x) if torch.is_tensor(x) else x for name, x in columns.items()})
    return drive({"op": "loss", "algo": algo, "tokens": tokens})


def trl_loss(batch, loss_type, eps=(0.2, 0.2), level="token", delta=None, longest=None, ratio=None, opsm=None):
    logps = batch.logprobs.clone().requires_grad_(True)
    trainer = trl_trainer((logps, batch.entropy), loss_type, 0.0, eps, correction=ratio is not None)
    trainer.importance_sampling_level = level
    trainer.args.delta = delta
    trainer.max_completion_length = longest
    trainer.off_policy_mask_threshold = opsm
    trainer.get_off_policy_mask = GRPOTrainer.get_off_policy_mask
    ids = torch.zeros_like(batch.mask, dtype=torch.long)
    inputs = {
        "prompt_ids": ids, "prompt_mask": batch.mask, "completion_ids": ids, "completion_mask": batch.mask,
        "advantages": batch.advantages, "num_items_in_batch": batch.mask.sum(),
        "old_per_token_logps": batch.anchor, "sampling_per_token_logps": batch.behaviour,
        "importance_sampling_ratio": ratio,
    }
    loss = GRPOTrainer._compute_loss(trainer, None, inputs)
    loss.backward()
    return loss.item(), logps.grad[batch.mask.bool()]


def agree(ours, loss, gradient):
    close(ours["loss"], loss, 1e-12, "loss")
    close(ours["logprobs"], gradient, 1e-12, "gradient")


def test_dr_grpos_reducer_is_trls():
    for seed in range(3):
        batch = random_batch(seed)
        loss, gradient = trl_loss(batch, "dr_grpo", longest=16)
        agree(our_loss(batch, {"objective": "ppo", "reducer": "constant"}, constant=16), loss, gradient)


def test_token_mean_of_one_batch_is_trls_bnpo():
    batch = random_batch(5)
    agree(our_loss(batch, {"objective": "ppo"}), *trl_loss(batch, "bnpo"))


def test_gspo_is_trls_sequence_level():
    """importance_sampling_level "sequence" with the grpo reducer, as TRL says of GSPO's paper."""
    clipped = 0
    for seed in range(4):
        batch = random_batch(seed)
        # The paper's clip; log-probs so near the anchor that some samples are inside.
        batch = batch._replace(logprobs=batch.anchor + 2e-3 * (batch.logprobs - batch.anchor))
        algo = {"objective": "gspo", "reducer": "sample_mean", "eps_clip_low": 3e-4, "eps_clip_high": 4e-4}
        ours = our_loss(batch, algo)
        agree(ours, *trl_loss(batch, "grpo", (3e-4, 4e-4), "sequence"))
        clipped += ours["metrics"]["policy/clipfrac"]
    assert 0 < clipped < 4


def test_cispo_is_trls():
    """TRL's epsilon_high is the bound of the ratio itself, and its ratio is over old_per_token_logps; ours is
    over the behaviour, so the behaviour takes that place here."""
    cut = 0
    for seed in range(3):
        batch = random_batch(seed)
        batch = batch._replace(anchor=batch.behaviour)
        ours = our_loss(batch, {"objective": "cispo", "cispo_max": 1.5})
        agree(ours, *trl_loss(batch, "cispo", (0.2, 1.5)))
        cut += ours["metrics"]["async/masked_share"]
    assert cut > 0


def sampler_ratio(batch, mode, low=None, high=None):
    """grpo_trainer.py, _generate_and_score_completions: vllm_importance_sampling_mode."""
    diff = (batch.anchor - batch.behaviour) * batch.mask
    if mode.startswith("sequence"):
        diff = diff.sum(-1, keepdim=True)
    ratio = torch.exp(diff)
    if mode.endswith("truncate"):
        return torch.clamp(ratio, min=low, max=high)
    return ratio.masked_fill((ratio < (low or -torch.inf)) | (ratio > high), 0.0)


@pytest.mark.parametrize("ours, mode, low, high", [
    ("tis", "token_truncate", None, 1.3), ("seq_tis", "sequence_truncate", None, 1.7),
    ("mis", "token_mask", None, 1.3), ("icepop", "token_mask", 0.6, 1.8),
])
def test_corrections_are_trls(ours, mode, low, high):
    """IcePop is TRL's token_mask with both bounds. The correction multiplies the clipped objective."""
    cut = 0
    for seed in range(3):
        batch = random_batch(seed)
        algo = {"objective": "ppo", "correction": ours, "correction_low": low or 0.0, "correction_high": high}
        answer = our_loss(batch, algo)
        agree(answer, *trl_loss(batch, "dapo", ratio=sampler_ratio(batch, mode, low, high)))
        cut += answer["metrics"]["async/masked_share"]
    assert 0 < cut < 3


def test_opsm_is_trls():
    """Its mask of samples with a negative advantage whose mean log(mu/pi) is over the limit."""
    dropped = 0
    for seed in range(6):
        batch = random_batch(seed)
        answer = our_loss(batch, {"objective": "ppo", "correction": "opsm", "correction_high": 0.05})
        agree(answer, *trl_loss(batch, "dapo", opsm=0.05))
        dropped += answer["metrics"]["async/masked_share"]
    assert dropped > 0


def torch_loss(batch, objective, weight=None):
    """-sum weight * objective(l) with autograd; token mean unless a weight is given."""
    l = batch.logprobs.clone().requires_grad_(True)
    weight = weights_of(batch, "token_mean") if weight is None else weight
    loss = -(weight * batch.mask * objective(l)).sum()
    loss.backward()
    return loss.item(), l.grad[batch.mask.bool()]


def ppo(r, a, low=0.2, high=0.2):
    return torch.min(r * a, r.clamp(1 - low, 1 + high) * a)


def test_dual_clip():
    """Ye et al. 2020, eq. 5: max(min(.,.), c A) where A < 0. TRL's delta bounds the ratio of both signs."""
    batch = random_batch(2)
    batch = batch._replace(logprobs=batch.anchor + 2 * (batch.logprobs - batch.anchor))
    a = batch.advantages[:, None]
    objective = lambda l: torch.where(
        a < 0, torch.max(ppo(torch.exp(l - batch.anchor), a), 1.5 * a), ppo(torch.exp(l - batch.anchor), a))
    ours = our_loss(batch, {"objective": "ppo", "dual_clip": 1.5})
    agree(ours, *torch_loss(batch, objective))
    assert ours["metrics"]["policy/clipfrac_dual"] > 0


def test_bypass_takes_the_behaviour_for_the_anchor():
    batch = random_batch(3)
    a = batch.advantages[:, None]
    agree(our_loss(batch, {"objective": "bypass"}),
          *torch_loss(batch, lambda l: ppo(torch.exp(l - batch.behaviour), a)))


def test_reinforce_and_topr():
    """TOPR: weight 1 where A > 0, else the product of pi/mu over the response, cut to [0, 1], detached."""
    batch = random_batch(4)
    a = batch.advantages[:, None]
    agree(our_loss(batch, {"objective": "reinforce"}), *torch_loss(batch, lambda l: a * l))
    product = torch.exp(((batch.logprobs - batch.behaviour) * batch.mask).sum(1, keepdim=True))
    weight = torch.where(a > 0, 1.0, product.clamp(0, 1))
    agree(our_loss(batch, {"objective": "topr"}), *torch_loss(batch, lambda l: weight * a * l))


def test_a3po_interpolates_the_anchor():
    """l_p = l_mu + alpha (sg(l) - l_mu), then the decoupled objective with cap 2."""
    batch = random_batch(6)
    alpha = torch.rand(batch.mask.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    a, l_mu = batch.advantages[:, None], batch.behaviour
    anchor = l_mu + alpha * (batch.logprobs - l_mu)
    rho = torch.exp(anchor - l_mu).clamp(max=2)
    ours = our_loss(batch, {"objective": "a3po", "correction_max": 2.0}, anchor=[], anchor_share=alpha)
    agree(ours, *torch_loss(batch, lambda l: rho * ppo(torch.exp(l - anchor), a)))


def test_geometric_rejection_keeps_or_drops_samples():
    """exp(mean log rho) in the band, weight 1 for what is kept (OpenRLHF's seq-mask-tis multiplies by rho)."""
    dropped = 0
    for seed in range(3):
        batch = random_batch(seed)
        a = batch.advantages[:, None]
        mean = ((batch.anchor - batch.behaviour) * batch.mask).sum(1, keepdim=True) / batch.mask.sum(1, keepdim=True)
        keep = ((mean.exp() >= 0.9) & (mean.exp() <= 1.3)).double()
        ours = our_loss(batch, {"objective": "ppo", "correction": "geo_rs", "correction_low": 0.9,
                                "correction_high": 1.3})
        agree(ours, *torch_loss(batch, lambda l: keep * ppo(torch.exp(l - batch.anchor), a)))
        dropped += ours["metrics"]["async/masked_share"]
    assert 0 < dropped < 3


@pytest.mark.parametrize("tau", [0.0, 0.04, 0.5, 100.0])
def test_m2po_masks_the_largest_until_the_mean_is_within_tau(tau):
    """NumPy: take the largest square away while the mean of the rest is above tau."""
    log_rho = np.random.default_rng(5).standard_normal(200) * 0.5
    keep = np.ones(200)
    while keep.any() and (log_rho[keep > 0] ** 2).mean() > tau:
        keep[np.argmax(np.where(keep > 0, log_rho**2, -1))] = 0
    assert drive({"op": "m2po", "log_rho": log_rho.tolist(), "tau": tau}) == keep.tolist()


def test_online_dpo_is_the_dpo_loss_of_best_and_worst():
    """Rafailov et al. 2023, eq. 7, mean over pairs; the samples of a pair lie side by side, best first."""
    batch = random_batch(7)
    batch = batch._replace(**{name: getattr(batch, name)[:4] for name in batch._fields})
    batch = batch._replace(advantages=torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64))
    l = batch.logprobs.clone().requires_grad_(True)
    h = ((l - batch.reference) * batch.mask).sum(1)
    loss = -torch.nn.functional.logsigmoid(0.3 * (h[0::2] - h[1::2])).mean()
    loss.backward()
    ours = our_loss(batch, {"objective": "online_dpo", "dpo_beta": 0.3}, pair_weight=0.5)
    agree(ours, loss.item(), l.grad[batch.mask.bool()])


@pytest.mark.parametrize("processes, settings", [
    (1, dict(per_device_train_batch_size=2, gradient_accumulation_steps=8, num_generations=16)),
    (4, dict(per_device_train_batch_size=2, gradient_accumulation_steps=8, num_generations=16)),
    (4, dict(gradient_accumulation_steps=2)),
    (2, dict(per_device_train_batch_size=4, steps_per_generation=6, num_generations=4, epsilon_high=0.28)),
    (3, dict(per_device_train_batch_size=4, generation_batch_size=48, num_generations=6, epsilon=0.1, epsilon_high=0.3)),
])  # fmt: skip
def test_batches_of_a_script_are_trls(tmp_path, monkeypatch, processes, settings):
    """`config from-trl`: samples of an optimiser step, prompts and samples of a generation, the sides of the clip."""
    monkeypatch.setattr(GRPOConfig, "world_size", processes)
    theirs = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to=[], **settings)
    flags = " ".join(f"--{name} {value}" for name, value in settings.items())
    (tmp_path / "run.sh").write_text(f"accelerate launch --num_processes {processes} -m trl.scripts.grpo {flags}\n")
    ours = subprocess.run([BUILD / "troupe", "config", "from-trl", tmp_path / "run.sh"], check=True, capture_output=True, text=True).stdout
    step = theirs.per_device_train_batch_size * theirs.gradient_accumulation_steps * processes
    made = [int(one) for one in re.findall(r"^  batch_size: (\d+)", ours, re.M)]
    assert sorted(made) == sorted([step, theirs.generation_batch_size // theirs.num_generations]), ours
    assert f"n_samples_per_prompt: {theirs.num_generations}" in ours
    if theirs.epsilon_high is not None:
        assert f"eps_clip_low_high: [{theirs.epsilon}, {theirs.epsilon_high}]" in ours
