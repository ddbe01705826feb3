"""Supervised and preference training against outside programs, through the real binary.

Three optimiser steps of `troupe train METHOD` on a tiny Llama, every row in every step, cut into
several micro-batches, against the same steps in float64 by torch.optim.AdamW and clip_grad_norm_ on
transformers' Llama. The losses are TRL 1.16's own code where it computes the same thing, run on
stubs of its trainers: DPOTrainer._compute_loss (every row of `dpo.loss`; its `ipo` divides by length,
its `sft` is the extra NLL), ORPOTrainer.odds_ratio_loss, CPOTrainer.cpo_loss (cpo and simpo),
KTOTrainer._compute_loss, RewardTrainer.compute_loss, GKDTrainer.generalized_jsd_loss (distill); transformers' loss with labels for sft and
pretrain; and lines of torch for cdpo (TRL's sigmoid ignores label_smoothing, its `robust` is another
loss), for ipo over sums, as the paper has it, for bco, whose trainer this TRL no longer has (a running
mean of all rewards, this step's included; no UDM), and for prm, whose trainer it no longer has either (and had with a
head of two classes): OpenRLHF's PRMLoss, cross entropy of the logits at placeholders. Conventions that no oracle
gives: plain answers end with the end token, and kto takes its z over each prompt with the answer of
the step's next row (with two rows: the other's answer). The load-balancing loss of experts is
transformers' load_balancing_loss_func over each micro-batch.
"""

import collections
import functools
import json
import os
import pathlib
import subprocess
import types

import pytest
import torch
import torch.nn.functional as F
from transformers import (AutoModelForCausalLM, AutoModelForSequenceClassification, Gemma2Config, LlamaConfig,
                          LlamaForCausalLM, LlamaForSequenceClassification, Qwen3MoeConfig)
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func
from trl import DPOTrainer, KTOTrainer, RewardTrainer
from trl.experimental.cpo import CPOTrainer
from trl.experimental.gkd import GKDTrainer
from trl.experimental.orpo import ORPOTrainer

from byte_model import END, byte_tokenizer

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
STEPS, LR, EPS, CLIP, BETA, TAU = 3, 1e-3, 1e-4, 0.5, 0.2, 0.07

PAIRS = [("1+1=", "2", "11", 0.0), ("what is two and two? ", "four", "a fish, I think", 0.5),
         ("9-4=", "5", "13", -0.25), ("say yes: ", "yes", "no", 1.0)]

SHAPE = dict(vocab_size=257, hidden_size=48, intermediate_size=64, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
             tie_word_embeddings=False, bos_token_id=None, eos_token_id=END, pad_token_id=None)
EXPERTS = dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=24, head_dim=12,
               norm_topk_prob=True)


@functools.cache
def start_folder(root, score):
    """A random model whose log-probs differ from token to token; `score` True, False, "moe" or "capped"."""
    torch.manual_seed(3)
    if score == "capped":
        model = AutoModelForCausalLM.from_config(Gemma2Config(
            **{**SHAPE, "tie_word_embeddings": True}, head_dim=12, query_pre_attn_scalar=12, final_logit_softcapping=2.0,
            attn_logit_softcapping=5.0, sliding_window=64))
    elif score == "moe":
        model = AutoModelForCausalLM.from_config(Qwen3MoeConfig(**SHAPE, **EXPERTS))
    else:
        config = LlamaConfig(**SHAPE, num_labels=1)
        model = (LlamaForSequenceClassification if score else LlamaForCausalLM)(config)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(1.0 if "norm" in name else 0.0, 0.15)
    folder = root / (score if isinstance(score, str) else "score" if score else "language")
    model.save_pretrained(folder)
    byte_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("supervised")


def ids(text, end=True):
    return list(text.encode()) + ([END] if end else [])


def train(root, name, method, rows, keys, score=False, micro=60, steps=STEPS):
    """The run's metric rows and its final model folder."""
    data = root / f"{name}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = root / f"run_{name}"
    flags = {"actor.model_name_or_path": start_folder(root, score), "data.dataset": data,
             "run.path": run, "train.batch_size": len(rows), "train.max_steps": STEPS,
             "train.threads": 1, "train.micro_tokens_max": micro, "actor.adam.lr": LR,
             "actor.adam.eps": EPS, "actor.max_norm": CLIP, "actor.lr_warmup_ratio": 0,
             "actor.min_lr_ratio": 1, **keys}
    config = root / "empty.yaml"
    config.write_text("{}\n")
    words = [str(BUILD / "troupe"), "train", method, str(config)]
    for key, value in flags.items():
        words += [f"--{key}", str(value)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "policy/loss" in line], run / "ckpt" / f"step_{steps:06}" / "model"


class Batch:
    """Prompts with answers, padded at the end, as TRL's collators have them."""

    def __init__(self, pairs):
        sequences = [(ids(prompt, False), ids(answer)) for prompt, answer in pairs]
        width = max(len(p) + len(a) for p, a in sequences)
        self.input_ids = torch.tensor([p + a + [0] * (width - len(p) - len(a)) for p, a in sequences])
        self.attention = torch.tensor(
            [[1] * (len(p) + len(a)) + [0] * (width - len(p) - len(a)) for p, a in sequences])
        self.completion = torch.tensor(
            [[0] * len(p) + [1] * len(a) + [0] * (width - len(p) - len(a)) for p, a in sequences])

    def log_probs(self, model):
        """Of every next token, 0 where it is no completion; what TRL's fused head returns."""
        logits = model(input_ids=self.input_ids, attention_mask=self.attention).logits
        picked = torch.log_softmax(logits[:, :-1], -1).gather(-1, self.input_ids[:, 1:, None])[..., 0]
        return picked * self.completion[:, 1:]


class StubAccelerator:
    device = torch.device("cpu")

    def gather(self, x):
        return x

    gather_for_metrics = gather

    def unwrap_model(self, model):
        return model


def stub(**members):
    return types.SimpleNamespace(
        model=types.SimpleNamespace(training=True), accelerator=StubAccelerator(),
        args=types.SimpleNamespace(center_rewards_coefficient=None, discopop_tau=TAU), aux_loss_enabled=False, _metrics={"train": collections.defaultdict(list)},
        _total_train_tokens=0, _tp_size=1, **members)


def outputs_of(batch, log_probs):
    zeros = torch.zeros_like(log_probs)
    return lambda **kwargs: types.SimpleNamespace(
        log_probs=log_probs, entropy=zeros, mean_logits=zeros, is_top1=zeros.bool())


def trl_dpo(model, frozen, types_, weights, beta=BETA, smoothing=0.0):
    batch = Batch([(p, c) for p, c, _, _ in PAIRS] + [(p, r) for p, _, r, _ in PAIRS])
    with torch.no_grad():
        chosen, rejected = batch.log_probs(frozen).sum(1).chunk(2)
    trainer = stub(ld_alpha=None, precompute_ref_logps=True, f_divergence_type="reverse_kl", beta=beta,
                   loss_types=types_, loss_weights=weights, label_smoothing=smoothing, use_weighting=False)
    inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention,
              "completion_mask": batch.completion, "ref_chosen_logps": chosen,
              "ref_rejected_logps": rejected}
    loss = DPOTrainer._compute_loss(trainer, outputs_of(batch, batch.log_probs(model)), inputs, False)
    return loss, trainer._metrics["train"]


def log_ratios(model, frozen):
    chosen, rejected = Batch([(p, c) for p, c, _, _ in PAIRS]), Batch([(p, r) for p, _, r, _ in PAIRS])
    ratio = lambda b: b.log_probs(model).sum(1) - b.log_probs(frozen).sum(1).detach()
    return ratio(chosen) - ratio(rejected)


def kind_of(score):
    return AutoModelForSequenceClassification if score is True else AutoModelForCausalLM


def steps_by_torch(root, loss_of, score=False):
    """Losses and the final weights of STEPS steps of AdamW in float64."""
    kind = kind_of(score)
    load = lambda: kind.from_pretrained(start_folder(root, score), dtype=torch.float64)
    model, frozen = load(), load()
    model.config._experts_implementation = "eager"  # the grouped product takes no doubles
    optimiser = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), eps=EPS, weight_decay=0)
    losses, metrics = [], []
    for _ in range(STEPS):
        loss, figures = loss_of(model, frozen)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        losses.append(loss.item())
        metrics.append({name: values[-1] for name, values in figures.items()})
    return losses, metrics, model.state_dict()


def compare(root, name, method, rows, keys, loss_of, score=False, micro=60):
    ours, folder = train(root, name, method, rows, keys, score, micro)
    losses, metrics, weights = steps_by_torch(root, loss_of, score)
    assert [row["policy/loss"] for row in ours] == pytest.approx(losses, rel=2e-5)
    assert ours[-1]["train/micro_batches"] > 1, "the test is about accumulation too"
    kind = kind_of(score)
    trained = kind.from_pretrained(folder, dtype=torch.float64).state_dict()
    moved = 0.0
    start = kind.from_pretrained(start_folder(root, score), dtype=torch.float64).state_dict()
    for key, tensor in weights.items():
        moved = max(moved, (tensor - start[key]).abs().max().item())
        assert (trained[key] - tensor).abs().max().item() < 1e-5, key
    assert moved > LR, "three steps move weights by more than one learning rate"
    for row, figures in zip(ours, metrics):
        for key in set(row) & set(figures) & {"rewards/chosen", "rewards/rejected", "rewards/margins",
                                              "rewards/accuracies", "logps/chosen", "logps/rejected",
                                              "policy/aux_loss", "rewards/delta", "policy/divergence",
                                              "policy/nll"}:
            assert row[key] == pytest.approx(figures[key], rel=1e-4, abs=1e-5), key


PAIR_ROWS = [{"prompt": p, "chosen": c, "rejected": r, "m": m} for p, c, r, m in PAIRS]
PAIR_KEYS = {"data.prompt_key": "prompt"}


def test_sft_is_transformers_loss_over_answers(root):
    batch = Batch([(p, c) for p, c, _, _ in PAIRS])

    def loss_of(model, frozen):
        labels = batch.input_ids.masked_fill(batch.completion == 0, -100)
        return model(input_ids=batch.input_ids, attention_mask=batch.attention, labels=labels).loss, {}

    rows = [{"input": p, "output": c} for p, c, _, _ in PAIRS]
    compare(root, "sft", "sft", rows, {}, loss_of, micro=30)


@functools.cache
def teacher_folder(root):
    """Another shape than the student's; the same tokens."""
    torch.manual_seed(8)
    model = LlamaForCausalLM(LlamaConfig(**{**SHAPE, "hidden_size": 32, "num_hidden_layers": 3}))
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(1.0 if "norm" in name else 0.0, 0.25)
    folder = root / "teacher"
    model.save_pretrained(folder)
    byte_tokenizer(folder)
    return folder


def gkd_loss(root, coef, beta, temperature):
    """(1 - coef) times the next-token loss and coef times TRL's divergence, both means over the answers' tokens."""
    batch = Batch([(p, c) for p, c, _, _ in PAIRS])
    teacher = AutoModelForCausalLM.from_pretrained(teacher_folder(root), dtype=torch.float64)
    labels = batch.input_ids.masked_fill(batch.completion == 0, -100)

    def loss_of(model, frozen):
        out = model(input_ids=batch.input_ids, attention_mask=batch.attention, labels=labels)
        with torch.no_grad():
            theirs = teacher(input_ids=batch.input_ids, attention_mask=batch.attention).logits
        divergence = GKDTrainer.generalized_jsd_loss(
            out.logits[:, :-1], theirs[:, :-1], labels=labels[:, 1:], beta=beta, temperature=temperature)
        return (1 - coef) * out.loss + coef * divergence, {
            "policy/divergence": [divergence.item()], "policy/nll": [out.loss.item()]}

    return loss_of


GKD = [(0.4, 0, 1), (1, 0.5, 0.9), (0.7, 1, 1), (0.5, 0.1, 2)]


@pytest.mark.parametrize("coef,beta,temperature", GKD[:2])
def test_three_steps_of_distill_are_those_of_trls_gkd(root, coef, beta, temperature):
    rows = [{"input": p, "output": c} for p, c, _, _ in PAIRS]
    keys = {"teacher.model_name_or_path": teacher_folder(root), "distill.coef": coef,
            "distill.beta": beta, "distill.temperature": temperature}
    compare(root, f"distill_{coef}_{beta}_{temperature}", "distill", rows, keys,
            gkd_loss(root, coef, beta, temperature), micro=30)


@pytest.mark.parametrize("coef,beta,temperature,student",
                         [(*row, False) for row in GKD] + [(0.6, 0.5, 0.9, "capped")])
def test_the_gradient_of_distill_is_that_of_trls_gkd(root, coef, beta, temperature, student):
    """One step of plain gradient descent with rate 1 shows the gradient of every weight."""
    rows = [{"input": p, "output": c} for p, c, _, _ in PAIRS]
    keys = {"teacher.model_name_or_path": teacher_folder(root), "distill.coef": coef,
            "distill.beta": beta, "distill.temperature": temperature, "actor.optim": "sgd",
            "actor.sgd.momentum": 0, "actor.max_norm": 0, "actor.adam.lr": 1, "train.max_steps": 1}
    ours, folder = train(root, f"gkd_{coef}_{beta}_{temperature}", "distill", rows, keys, student, micro=30, steps=1)
    load = lambda where: AutoModelForCausalLM.from_pretrained(where, dtype=torch.float64, attn_implementation="eager")
    model, after = load(start_folder(root, student)), load(folder).state_dict()
    loss, _ = gkd_loss(root, coef, beta, temperature)(model, None)
    loss.backward()
    assert ours[0]["policy/loss"] == pytest.approx(loss.item(), rel=1e-5)
    largest = 0.0
    for name, tensor in model.named_parameters():
        largest = max(largest, tensor.grad.abs().max().item())
        assert (tensor.detach() - after[name] - tensor.grad).abs().max().item() < 1e-5, name
    assert largest > 1e-2, "there is a gradient"


def test_sft_with_experts_adds_transformers_load_balancing_loss(root):
    """Micro-batches as packing makes them, longest rows first; each counts by its rows, all tokens
    but the last of a sequence. The folder that comes out is opened by transformers."""
    batch = Batch([(p, c) for p, c, _, _ in PAIRS])
    micro_batches, coef = [[1, 0], [3, 2]], 0.5
    rows_of = lambda micro: batch.attention[micro].sum().item() - len(micro)
    assert [rows_of(micro) for micro in micro_batches] == [30, 17]

    def loss_of(model, frozen):
        labels = batch.input_ids.masked_fill(batch.completion == 0, -100)
        loss = model(input_ids=batch.input_ids, attention_mask=batch.attention, labels=labels).loss
        aux = 0.0
        for micro in micro_batches:
            mask = batch.attention[micro].clone()
            mask[torch.arange(len(micro)), mask.sum(1) - 1] = 0
            out = model(input_ids=batch.input_ids[micro], attention_mask=mask, output_router_logits=True)
            aux += rows_of(micro) / 47 * load_balancing_loss_func(out.router_logits, 5, 2, mask)
        return loss + coef * aux, {"policy/aux_loss": [aux.item()]}

    rows = [{"input": p, "output": c} for p, c, _, _ in PAIRS]
    compare(root, "moe", "sft", rows, {"actor.aux_loss_coef": coef}, loss_of, score="moe", micro=30)


def test_sft_learns_every_answer_of_a_dialogue(root):
    """The labels are written by hand: a and b of each turn, with the end token behind each."""
    template = ("{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{% if m['role'] == "
                "'assistant' %}<|end|>{% endif %}{{ '\n' }}{% endfor %}"
                "{% if add_generation_prompt %}[assistant] {% endif %}")
    (start_folder(root, False) / "chat_template.jinja").write_text(template)
    pieces = [("[user] hi\n[assistant] ", "ab"), ("\n[user] and\n[assistant] ", "c")]
    tokens, labels = [], []
    for prompt, answer in pieces:
        tokens += ids(prompt, False) + ids(answer)
        labels += [-100] * len(prompt) + ids(answer)

    def loss_of(model, frozen):
        other = Batch([("[user] x\n[assistant] ", "yes")])
        first = model(input_ids=torch.tensor([tokens]), labels=torch.tensor([labels])).loss
        return (first * 5 - other.log_probs(model).sum()) / 9, {}

    turn = lambda role, text: {"role": role, "content": text}
    rows = [{"messages": [turn("user", "hi"), turn("assistant", "ab"), turn("user", "and"),
                          turn("assistant", "c")]},
            {"messages": [turn("user", "x"), turn("assistant", "yes")]}]
    keys = {"data.apply_chat_template": "true", "data.multiturn": "true"}
    compare(root, "dialogue", "sft", rows, keys, loss_of)


def test_pretrain_is_transformers_loss_over_all_tokens(root):
    batch = Batch([("", p + c) for p, c, _, _ in PAIRS])

    def loss_of(model, frozen):
        labels = batch.input_ids.masked_fill(batch.attention == 0, -100)
        return model(input_ids=batch.input_ids, attention_mask=batch.attention, labels=labels).loss, {}

    compare(root, "pretrain", "pretrain", [{"input": p + c} for p, c, _, _ in PAIRS], {}, loss_of,
            micro=30)


def trl_reward_loss(model, frozen):
    batch = Batch([(p, c) for p, c, _, _ in PAIRS] + [(p, r) for p, _, r, _ in PAIRS])
    last = batch.attention.sum(1) - 1
    scores = model.score(model.model(input_ids=batch.input_ids,
                                     attention_mask=batch.attention).last_hidden_state)
    logits = scores[torch.arange(len(last)), last]
    inputs = {"attention_mask": batch.attention, "margin": torch.tensor([m for *_, m in PAIRS])}
    outputs = lambda **kwargs: types.SimpleNamespace(logits=logits)
    trainer = stub()
    return RewardTrainer.compute_loss(trainer, outputs, inputs), {}


def test_rm_is_trls_reward_loss_with_margins(root):
    compare(root, "rm", "rm", PAIR_ROWS, {**PAIR_KEYS, "data.margin_key": "m"}, trl_reward_loss, score=True)


@pytest.fixture
def shared_pairs(monkeypatch):
    """Three of five pairs have one prompt and share answers, each as the better and as the worse one."""
    pairs = PAIRS[:2] + [("9-4=", "5", "13", -0.25), ("9-4=", "six", "5", 1.0), ("9-4=", "5", "a cat", 0.25)]
    monkeypatch.setitem(globals(), "PAIRS", pairs)
    return [{"prompt": p, "chosen": c, "rejected": r, "m": m} for p, c, r, m in pairs]


def test_pairs_that_share_prompt_and_answers_are_trls(root, shared_pairs):
    """They are computed once here, and each by itself there."""
    keys = {**PAIR_KEYS, "data.rows_together": 3}
    compare(root, "shared_rm", "rm", shared_pairs, {**keys, "data.margin_key": "m"}, trl_reward_loss, score=True)
    compare(root, "shared_dpo", "dpo", shared_pairs, {**keys, "dpo.beta": BETA},
            lambda model, frozen: trl_dpo(model, frozen, ["sigmoid"], [1.0]))


def test_dpo_is_trls_sigmoid(root):
    compare(root, "dpo", "dpo", PAIR_ROWS, {**PAIR_KEYS, "dpo.beta": BETA},
            lambda model, frozen: trl_dpo(model, frozen, ["sigmoid"], [1.0]))


def test_dpo_with_nll_is_trls_sigmoid_and_sft(root):
    compare(root, "rpo", "dpo", PAIR_ROWS, {**PAIR_KEYS, "dpo.beta": BETA, "dpo.nll_loss_coef": 0.3},
            lambda model, frozen: trl_dpo(model, frozen, ["sigmoid", "sft"], [1.0, 0.3]))


def test_ipo_with_length_mean_is_trls_ipo(root):
    keys = {**PAIR_KEYS, "dpo.beta": BETA, "dpo.length_mean": "true"}
    ours = lambda model, frozen: (trl_dpo(model, frozen, ["ipo"], [1.0])[0], {})
    compare(root, "ipo_mean", "ipo", PAIR_ROWS, keys, ours)


def test_ipo_over_sums_is_the_papers(root):
    compare(root, "ipo", "ipo", PAIR_ROWS, {**PAIR_KEYS, "dpo.beta": BETA},
            lambda model, frozen: (((log_ratios(model, frozen) - 1 / (2 * BETA)) ** 2).mean(), {}))


def test_cdpo_gives_the_other_order_its_share(root):
    def loss_of(model, frozen):
        h = BETA * log_ratios(model, frozen)
        return (-0.8 * F.logsigmoid(h) - 0.2 * F.logsigmoid(-h)).mean(), {}

    compare(root, "cdpo", "cdpo", PAIR_ROWS,
            {**PAIR_KEYS, "dpo.beta": BETA, "dpo.label_smoothing": 0.2}, loss_of)


@pytest.mark.parametrize("loss, smoothing", [
    ("hinge", 0), ("robust", 0.1), ("exo_pair", 0.01), ("nca_pair", 0), ("sppo_hard", 0), ("aot", 0.15),
    ("apo_zero", 0), ("apo_down", 0), ("discopop", 0), ("sigmoid_norm", 0)])
def test_the_losses_of_a_pair_are_trls(root, loss, smoothing):
    """A step's rows are one batch here, so aot sorts the same log-ratios as TRL."""
    means = loss == "sigmoid_norm"
    keys = {**PAIR_KEYS, "dpo.beta": BETA, "dpo.label_smoothing": smoothing, "dpo.length_mean": str(means).lower(),
            "dpo.loss": loss.removesuffix("_norm"), "dpo.discopop_tau": TAU}

    def loss_of(model, frozen):
        value, figures = trl_dpo(model, frozen, [loss], [1.0], smoothing=smoothing)
        return value, {} if means else figures

    compare(root, f"dpo_{loss}", "dpo", PAIR_ROWS, keys, loss_of)


def answers_of(model):
    """Log-probs of the answers, [pairs, tokens], and their counts of tokens: better ones, then worse ones."""
    for answers in ([(p, c) for p, c, _, _ in PAIRS], [(p, r) for p, _, r, _ in PAIRS]):
        batch = Batch(answers)
        yield batch.log_probs(model), batch.completion.sum(1)


def figures_of(chosen, rejected):
    return {"rewards/chosen": [chosen.mean().item()], "rewards/rejected": [rejected.mean().item()],
            "rewards/margins": [(chosen - rejected).mean().item()]}


def test_orpo_is_trls_odds_ratio_and_the_next_token(root):
    """TRL's next-token loss is over prompt and answer, which the paper's is not."""
    def loss_of(model, frozen):
        (chosen, count), (rejected, others) = answers_of(model)
        losses, *rewards, _, _ = ORPOTrainer.odds_ratio_loss(stub(beta=BETA), chosen.sum(1) / count,
                                                             rejected.sum(1) / others)
        return -chosen.sum() / count.sum() - losses.mean(), figures_of(*rewards)

    compare(root, "orpo", "orpo", PAIR_ROWS, {**PAIR_KEYS, "orpo.beta": BETA}, loss_of)


@pytest.mark.parametrize("method, nll, means", [("cpo", 1, False), ("simpo", 0.3, True)])
def test_cpo_and_simpo_are_trls(root, method, nll, means):
    def loss_of(model, frozen):
        (chosen, count), (rejected, others) = answers_of(model)
        trainer = stub(beta=BETA, alpha=0.0, loss_type="simpo" if means else "sigmoid", simpo_gamma=0.4,
                       label_smoothing=0.0)
        losses, *rewards = CPOTrainer.cpo_loss(trainer, chosen.sum(1) / (count if means else 1),
                                               rejected.sum(1) / (others if means else 1))
        return losses.mean() - nll * chosen.sum() / count.sum(), figures_of(*rewards)

    keys = {**PAIR_KEYS, f"{method}.beta": BETA, f"{method}.nll_loss_coef": nll}
    keys |= {"simpo.gamma": 0.4} if means else {}
    compare(root, f"{method}_{nll}", method, PAIR_ROWS, keys, loss_of)


def test_bco_classifies_around_the_running_mean(root):
    rows = [("1+1=", "2", True), ("what is two and two? ", "a fish, I think", False), ("9-4=", "5", True)]
    seen = []

    def loss_of(model, frozen):
        own = Batch([(p, a) for p, a, _ in rows])
        rewards = BETA * (own.log_probs(model).sum(1) - own.log_probs(frozen).sum(1).detach())
        seen.extend(rewards.tolist())
        sign = torch.tensor([1.0 if good else -1.0 for *_, good in rows])
        delta = sum(seen) / len(seen)
        return -F.logsigmoid(sign * (rewards - delta)).mean(), {"rewards/delta": [delta]}

    compare(root, "bco", "bco", [{"input": p, "output": a, "label": good} for p, a, good in rows],
            {"bco.beta": BETA}, loss_of, micro=40)
    assert abs(sum(seen[:3])) < 1e-6 < abs(sum(seen))


STEPPED = [("2+3*4? ", ["3*4=12", "2+12=14"], [1, 0]), ("1+1? ", ["it is 2"], [0.25]),
           ("say yes ", ["a", "bc", "yes"], [0.5, 0, 1])]
PLUS, MINUS, PLACE = ord("+"), ord("-"), ord("#")


@pytest.mark.parametrize("kind", ["hard", "soft", "vocabulary", "stepwise"])
def test_prm_is_openrlhfs(root, kind):
    """Labels at placeholders alone: hard among two tokens, soft, and hard over the vocabulary; and rows that list
    their steps, as TRL's stepwise data sets have them, whose probabilities are 0 and 1."""
    texts = [prompt + "\n".join(step + "#" for step in steps) for prompt, steps, _ in STEPPED]
    shares = [share if kind == "soft" else round(share + 0.01) for *_, all_ in STEPPED for share in all_]
    batch = Batch([("", text) for text in texts])
    places = (batch.input_ids == PLACE) & (batch.attention == 1)
    wanted = torch.tensor(shares, dtype=torch.float64)

    def loss_of(model, frozen):
        logits = model(input_ids=batch.input_ids, attention_mask=batch.attention).logits[places]
        if kind == "vocabulary":
            labels = torch.where(wanted == 1, PLUS, MINUS)
            return F.cross_entropy(logits, labels), {}
        logits = logits[:, [PLUS, MINUS]]
        labels = torch.stack([wanted, 1 - wanted], dim=-1)
        loss = F.cross_entropy(logits, labels if kind == "soft" else (1 - wanted).long())
        right = (logits.argmax(-1) == labels.argmax(-1)).double().mean().item()
        return loss, {"rewards/accuracies": [right]}

    rows, left = [], list(shares)
    for text, (prompt, steps, _) in zip(texts, STEPPED):
        own, left = left[:len(steps)], left[len(steps):]
        labels = own if kind in ("soft", "stepwise") else ["+" if one else "-" for one in own]
        rows.append({"prompt": prompt, "completions": steps, "labels": [bool(one) for one in own]}
                    if kind == "stepwise" else {"input": text, "label": labels})
    keys = {"prm.placeholder_token": "#", "prm.step_separator": "\\n"}
    keys |= {} if kind == "vocabulary" else {"prm.reward_tokens": "+,-"}
    compare(root, "prm_" + kind, "prm", rows, keys, loss_of, micro=24)
    config = json.loads((root / f"run_prm_{kind}/ckpt/step_000003/model/config.json").read_text())
    assert config["process_reward"] == {"placeholder_token": "#", "step_separator": "\n",
                                        "reward_tokens": [] if kind == "vocabulary" else ["+", "-"]}


def test_kto_is_trls(root):
    """Two rows, so that the mismatched pairs do not depend on the order. Two answers of different
    lengths, weights that differ, and a z above 0 from the second step on."""
    rows = [("1+1=", "2", True), ("what is two and two? ", "a fish, I think", False)]

    def loss_of(model, frozen):
        own = Batch([(p, a) for p, a, _ in rows])
        swapped = Batch([(rows[0][0], rows[1][1]), (rows[1][0], rows[0][1])])
        with torch.no_grad():
            reference, swapped_reference = own.log_probs(frozen).sum(1), swapped.log_probs(frozen).sum(1)
            kl = swapped.log_probs(model).sum(1)
        trainer = stub(beta=BETA, loss_type="kto", calculate_KL=True, precompute_ref_logps=True,
                       desirable_weight=1.3, undesirable_weight=0.7,
                       _compute_kl_logps=lambda model, batch: kl)
        inputs = {"input_ids": own.input_ids, "attention_mask": own.attention,
                  "completion_mask": own.completion, "ref_logps": reference,
                  "ref_KL_logps": swapped_reference, "label": torch.tensor([good for *_, good in rows])}
        loss = KTOTrainer._compute_loss(trainer, outputs_of(own, own.log_probs(model)), inputs, False)
        return loss, {k: v for k, v in trainer._metrics["train"].items() if not k.startswith("logps")}

    keys = {"kto.beta": BETA, "kto.desirable_weight": 1.3, "kto.undesirable_weight": 0.7}
    compare(root, "kto", "kto", [{"input": p, "output": a, "label": good} for p, a, good in rows], keys,
            loss_of, micro=40)
