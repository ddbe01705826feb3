"""The runs of the record: a table of names and command lines. Paths are relative to the folder that
all of them are run in; `OUT` stands for a run's own folder there."""

from dataclasses import dataclass, field

import tiny


@dataclass
class Run:
    name: str
    commands: list
    like: str = ""      # a run that must have the same hashes
    old: str = ""       # starts from this folder of tests/data/old_run
    kill: bool = False  # the first command is killed after its first checkpoint, then repeated
    stale: bool = False  # counts only if its last update learned from the first weights' samples
    server: list = field(default_factory=list)  # a command that runs beside it; its address is URL
    keys: dict = field(default_factory=dict)  # of a training run


def words(keys):
    """Flags; a list is a flag that is given several times, None leaves a default in place."""
    out = []
    for key, value in keys.items():
        if value is None:
            continue
        for one in value if isinstance(value, list) else [value]:
            out += [f"--{key}", {True: "true", False: "false"}.get(one, str(one))
                    if isinstance(one, bool) else str(one)]
    return out


ALWAYS = {"run.path": "OUT/run", "train.threads": 1, "train.seed": 5, "logger.tensorboard": False,
          "actor.model_name_or_path": "inputs/model"}
# Two optimiser steps a pass and two passes, at a rate that moves the policy away from its anchor.
PPO = {**ALWAYS, "data.prompt_dataset": "inputs/data/train.jsonl", "data.input_key": "prompt",
       "data.label_key": "answer", "data.prompt_max_len": 48, "rollout.batch_size": 4,
       "rollout.n_samples_per_prompt": 4, "rollout.max_new_tokens": 8, "reward.rule": "regex",
       "reward.rule_pattern": "[A-Za-z<>()]{2}", "actor.adam.lr": 3e-3, "train.batch_size": 8,
       "train.max_epochs": 2, "train.max_steps": 2, "cluster.transport": "loopback"}
SUPERVISED = {**ALWAYS, "train.batch_size": 4, "train.max_steps": 3, "train.micro_tokens_max": 64,
              "data.max_len": 96, "actor.adam.lr": 1e-3}
FLAT = {"actor.lr_warmup_ratio": 0, "actor.min_lr_ratio": 1, "critic.lr_warmup_ratio": 0,
        "critic.min_lr_ratio": 1}
FLAT_SUPERVISED = {"actor.lr_warmup_ratio": 0, "actor.min_lr_ratio": 1}
KL = {"algo.kl.init_coef": 0.05}
KL_REWARD = {**KL, "algo.kl.use_loss": False}
CRITIC = {"algo.advantage.estimator": "gae", "algo.advantage.lambd": 0.95, "critic.adam.lr": 1e-3}
CAF = {"cluster.transport": "caf", "train.threads": 2}
PAIRS = {"data.dataset": "inputs/data/pairs.jsonl", "data.prompt_key": "input"}
RATED = {"data.dataset": "inputs/data/rated.csv"}
ANSWERS = {"data.dataset": "inputs/data/answers.jsonl"}
TEXTS = {"data.dataset": "inputs/data/texts.jsonl", "data.input_key": "text"}
NO_RULE = {"reward.rule": None, "reward.rule_pattern": None}
MODELS = {"reward.model_name_or_path": ["inputs/rm-a", "inputs/rm-b"]}
EVAL = {"eval.dataset": "inputs/data/heldout.jsonl", "eval.steps": 1}
STALE = {**NO_RULE, "reward.python": "inputs/data/late_reward.py", "train.staleness_max": 1}

RUNS = []


def add(name, *commands, **more):
    RUNS.append(Run(name, list(commands), **more))


def train(name, method, base, *changes, **more):
    keys = dict(base)
    for change in changes:
        keys.update(change)
    RUNS.append(Run(name, [["train", method, *words(keys)]], keys=keys, **more))


def ppo(name, *changes, **more):
    train(name, "ppo", PPO, *changes, **more)


def supervised(name, method, *changes, **more):
    train(name, method, SUPERVISED, *changes, **more)


# A run in two parts: 2 updates, then the rest (a flat rate, so that the first part knows nothing of
# the second), and the same run in one go.
def in_two_parts(name, method, base, *changes):
    train(f"{name}.whole", method, base, *changes, {"train.max_steps": 4, "ckpt.save_steps": 1})
    keys = RUNS[-1].keys
    RUNS.append(Run(f"{name}.in_two_parts",
                    [["train", method, *words({**keys, "train.max_steps": steps})]
                     for steps in (2, 4)], like=f"{name}.whole", keys=keys))



# --- estimators, objectives, reducers, corrections -------------------------------------------------
for estimator in ("group_norm", "dr_grpo", "rloo", "reinforce_baseline", "maxrl", "opo", "gpg"):
    ppo(f"estimator.{estimator}", {"algo.advantage.estimator": estimator}, KL)
ppo("estimator.grpo_is_group_norm", {"algo.advantage.estimator": "grpo"}, KL,
    like="estimator.group_norm")
ppo("estimator.reinforce_pp", {"algo.advantage.estimator": "reinforce_pp",
                               "rollout.n_samples_per_prompt": 1, "train.batch_size": 2}, KL)
ppo("estimator.reinforce", {"algo.advantage.estimator": "reinforce", "algo.advantage.gamma": 0.9},
    KL_REWARD)
ppo("estimator.gae", CRITIC, {"algo.advantage.gamma": 0.97})
ppo("estimator.vtrace", CRITIC, {"algo.advantage.estimator": "vtrace"})
for objective in ("ppo", "decoupled", "a3po", "bypass", "gspo", "cispo", "reinforce", "topr",
                  "online_dpo"):
    ppo(f"objective.{objective}", {"algo.objective": objective},
        {"algo.reducer": "sample_mean"} if objective == "gspo" else {},
        {"algo.advantage.estimator": "rloo"} if objective == "online_dpo" else {})
ppo("objective.bounds", {"algo.objective": "ppo", "actor.eps_clip_low_high": "[0.1, 0.28]",
                         "actor.dual_clip": 1.5})
ppo("objective.cispo_bound", {"algo.objective": "cispo", "algo.cispo_max": 1.1})
ppo("objective.online_dpo_beta", KL, {"algo.objective": "online_dpo", "algo.dpo_beta": 0.5,
                                      "algo.advantage.estimator": "dr_grpo"})
ppo("objective.eps_and_entropy", {"actor.eps_clip": 0.05, "actor.entropy_coef": 0.02})
for reducer in ("token_mean", "sample_mean", "constant"):
    ppo(f"reducer.{reducer}", {"algo.reducer": reducer})
ppo("reducer.constant_5", {"algo.reducer": "constant", "algo.reducer_constant": 5,
                           "algo.advantage.estimator": "dr_grpo"})
for correction in ("none", "tis", "seq_tis", "mis", "icepop", "geo_rs", "m2po", "opsm"):
    change = {"algo.objective": "ppo", "algo.correction.type": correction}
    ppo(f"correction.{correction}", change)
    ppo(f"old.correction.{correction}", STALE, change, KL, stale=True)

# --- samples of older weights -----------------------------------------------------------------------
for objective in ("decoupled", "a3po", "bypass", "cispo", "topr", "reinforce", "online_dpo"):
    ppo(f"old.objective.{objective}", STALE, KL, {"algo.objective": objective},
        {"algo.advantage.estimator": "rloo"} if objective == "online_dpo" else {}, stale=True)
ppo("old.objective.gspo", STALE, {"algo.objective": "gspo", "algo.reducer": "sample_mean",
                                  "algo.correction.type": "tis"}, stale=True)
ppo("old.decoupled_bound", STALE, {"algo.correction_max": 1.25, "algo.correction.type": "geo_rs",
                                   "algo.correction.low": 0.7, "algo.correction.high": 1.4},
    stale=True)
ppo("old.bypass_with_opsm", STALE, {"algo.objective": "bypass", "algo.correction.type": "opsm",
                                    "algo.correction.high": 0.1}, stale=True)
ppo("old.topr_with_m2po", STALE, {"algo.objective": "topr", "algo.correction.type": "m2po",
                                  "algo.correction.high": 0.05}, stale=True)
ppo("old.vtrace", STALE, CRITIC, KL_REWARD,
    {"algo.advantage.estimator": "vtrace", "algo.advantage.rho_max": 1.5,
     "algo.advantage.c_max": 0.8, "algo.advantage.lambd": 0.9}, stale=True)
ppo("old.vtrace_reinforce", STALE, CRITIC, {"algo.advantage.estimator": "vtrace",
                                            "algo.objective": "reinforce"}, stale=True)
ppo("old.gae", STALE, CRITIC, stale=True)
ppo("old.one_step", STALE, {"train.batch_size": 0, "train.max_epochs": 1}, stale=True)
ppo("old.kl_target", STALE, KL_REWARD, {"algo.kl.estimator": "k1", "algo.kl.target": 0.1,
                                        "algo.kl.horizon": 64}, stale=True)
ppo("old.recompute_in_processes", STALE, CAF, {"rollout.kv_on_update": "recompute"}, stale=True)

# --- KL -----------------------------------------------------------------------------------------------
for estimator in ("k2", "k3"):
    ppo(f"kl.{estimator}_in_the_loss", KL, {"algo.kl.estimator": estimator})
for estimator in ("k1", "k2", "k3"):
    ppo(f"kl.{estimator}_in_the_reward", KL_REWARD, {"algo.kl.estimator": estimator})
ppo("kl.per_sample", KL_REWARD, {"algo.kl.per_sample": True, "algo.kl.estimator": "k1",
                                 "algo.advantage.estimator": "rloo", "algo.objective": "reinforce"})
ppo("kl.target", KL, {"algo.kl.target": 0.5, "algo.kl.horizon": 100, "train.max_steps": 3})
ppo("kl.stop", KL, {"algo.kl.stop": 1e-4})
ppo("kl.other_reference", KL, {"ref.model_name_or_path": "inputs/other"})

# --- rewards ------------------------------------------------------------------------------------------
ppo("reward.exact", {"reward.rule": "exact", "reward.rule_pattern": None,
                     "data.prompt_dataset": "inputs/data/exact.jsonl", "rollout.max_new_tokens": 1})
ppo("reward.last_number", {"reward.rule": "last_number", "reward.rule_pattern": None,
                           "data.prompt_dataset": "inputs/data/digits.jsonl",
                           "rollout.n_samples_per_prompt": 32, "train.batch_size": 0})
ppo("reward.regex_group", {"reward.rule_pattern": "([a-c])", "rollout.n_samples_per_prompt": 16})
ppo("reward.python", NO_RULE, {"reward.python": "inputs/data/reward.py"})
ppo("reward.http", NO_RULE, {"reward.http": "URL"},
    server=["serve-reward", "--python", "inputs/data/plain_reward.py", "--listen", "127.0.0.1:0"])
ppo("reward.models", NO_RULE, MODELS)
ppo("reward.weights", MODELS, {"reward.weights": "[1, 0.5, -0.25]"})
ppo("reward.stored", NO_RULE, {"reward.normalize": "stored",
                               "reward.model_name_or_path": "inputs/rm-a"})
ppo("reward.running", NO_RULE, MODELS, {"reward.normalize": "running", "train.max_steps": 3})
ppo("reward.clip", NO_RULE, MODELS, {"reward.clip_range": "[-0.05, 0.2]"})
ppo("reward.clip_after", NO_RULE, MODELS, {"reward.clip_range": "[-0.5, 0.7]",
                                           "reward.clip_order": "openrlhf"})
ppo("reward.overlong", {"reward.overlong_buffer_len": 4, "reward.overlong_penalty_factor": 0.5})
ppo("reward.stop_properly", {"reward.stop_properly_penalty_coef": 0.25})
ppo("reward.stop_properly_below_0", {"reward.stop_properly_penalty_coef": -0.5})
ppo("filter.dynamic", {"algo.dynamic_filtering_enable": True})
ppo("filter.range", NO_RULE, MODELS, {"algo.dynamic_filtering_enable": True,
                                      "algo.dynamic_filtering_range": "[-0.1, 0.3]"})

# --- critic -------------------------------------------------------------------------------------------
ppo("critic.of_its_own", CRITIC, {"critic.model_name_or_path": "inputs/other",
                                  "critic.save_value_network": True})
ppo("critic.from_the_reward_model", CRITIC, NO_RULE, MODELS, {"critic.save_value_network": True})
ppo("critic.optimiser", CRITIC,
    {"critic.value_clip": 0.02, "critic.max_norm": 0.5, "critic.adam.weight_decay": 0.1,
     "critic.adam.betas": "[0.8, 0.99]", "critic.adam.eps": 1e-6, "critic.lr_warmup_ratio": 0.5,
     "critic.min_lr_ratio": 0.3})
ppo("critic.no_clip", CRITIC, {"critic.value_clip": 0, "algo.advantage.no_std_norm": True})
ppo("critic.freezing", CRITIC, {"critic.freezing_steps": 1, "rollout.n_samples_per_prompt": 1,
                                "train.batch_size": 2}, KL_REWARD, {"algo.kl.estimator": "k1"})

# --- sampling, engine, data ------------------------------------------------------------------------------
ppo("sampling.top_p", {"rollout.top_p": 0.8, "rollout.temperature": 0.7})
ppo("sampling.top_k", {"rollout.top_k": 20, "rollout.temperature": 1.3})
ppo("sampling.min_p", {"rollout.min_p": 0.1})
ppo("sampling.stop", {"rollout.stop": ["a", "("]})
ppo("sampling.seed_and_episodes", {"train.seed": 77, "train.num_episodes": 2, "train.max_steps": 0,
                                   "data.max_samples": 8})
ppo("engine.small", {"rollout.max_num_seqs": 5, "rollout.max_num_batched_tokens": 16,
                     "rollout.enable_prefix_caching": False, "rollout.enable_sleep": True,
                     "rollout.kv_cache_gb": 0.001}, like="objective.decoupled")
ppo("data.chat", {"data.prompt_dataset": "inputs/data/chats.jsonl"})
ppo("data.text_in_a_template", {"data.apply_chat_template": True})
ppo("data.input_template", {"data.input_template": "Q: {} A:"})
ppo("data.two_files", {"data.prompt_dataset": "inputs/data/train.jsonl,inputs/data/more.jsonl",
                       "data.probs": "[0.25, 0.75]"})
ppo("data.sharegpt", {"data.prompt_dataset": "inputs/data/sharegpt.json", "data.input_key": None,
                      "data.label_key": "label"})
ppo("data.ptx", {"data.pretrain_dataset": "inputs/data/ptx.jsonl", "actor.ptx_coef": 0.3})
ppo("eval.sampled", EVAL, {"eval.n_samples_per_prompt": 4})
ppo("eval.warm_best", EVAL, {"eval.temperature": 1.0, "eval.n_samples_per_prompt": 2,
                             "eval.pass_score": 1.0, "ckpt.best_metric_key": "eval/pass@1",
                             "ckpt.save_steps": 1})
ppo("eval.greedy", EVAL, {"eval.temperature": 0, "eval.steps": 0}, NO_RULE, MODELS)

# --- the trained weights and the optimiser -----------------------------------------------------------------
ppo("optimiser.adam", {"actor.adam.betas": "[0.8, 0.99]", "actor.adam.eps": 1e-6,
                       "actor.adam.weight_decay": 0.1, "actor.max_norm": 0.5,
                       "actor.lr_warmup_ratio": 0.5, "actor.min_lr_ratio": 0.3})
ppo("optimiser.no_norm_no_warmup", {"actor.max_norm": 0, "actor.lr_warmup_ratio": 0})
ppo("optimiser.muon", {"actor.optim": "muon", "actor.muon.lr": 0.05, "actor.lr_scheduler": "wsd",
                       "actor.param_groups": ["norm weight_decay=0.5", "embed_tokens lr=0.1"]})
ppo("optimiser.bf16_moments", {"actor.optim": "adamw_bf16", "actor.lr_scheduler": "linear"})
ppo("optimiser.moments_in_8_bits", {"actor.optim": "adamw_8bit", "actor.lr_scheduler": "restarts",
                                    "actor.lr_cycles": 2})
ppo("optimiser.sgd", {"actor.optim": "sgd", "actor.lr_scheduler": "constant"})
ppo("optimiser.ema", {"train.enable_ema": True, "train.ema_beta": 0.9})
ppo("optimiser.micro_batches", {"train.micro_tokens_max": 20, "train.batch_size": 16})
ppo("optimiser.two_threads", {"train.threads": 2, "train.batch_size": 0})
ppo("optimiser.not_finite", {"actor.adam.lr": 1, "actor.max_norm": 0,
                             "actor.adam.betas": "[0, 0]", "actor.adam.eps": 1e-30,
                             "train.nonfinite_steps_max": 1000, "actor.lr_warmup_ratio": 0})
ppo("weights.bf16", {"actor.param_dtype": "bf16"}, KL)
ppo("weights.checkpointing", {"actor.gradient_checkpointing_enable": True}, KL,
    like="estimator.group_norm")
ppo("weights.freeze", {"actor.freeze": "mlp,k_proj", "actor.adam.weight_decay": 0.1})
ppo("weights.lora", {"actor.lora.rank": 4}, KL)
ppo("weights.lora_some", {"actor.lora.rank": 2, "actor.lora.alpha": 5,
                          "actor.lora.target": "q_proj,down_proj", "actor.param_dtype": "bf16"})
ppo("weights.lora_critic", {"actor.lora.rank": 4}, CRITIC)
ppo("experts.balance", {"actor.model_name_or_path": "inputs/family/qwen2_moe",
                        "actor.aux_loss_coef": 0.1}, KL)
ppo("experts.mixtral", {"actor.model_name_or_path": "inputs/family/mixtral"}, CRITIC)

# --- lanes of a step's gradient ----------------------------------------------------------------------------
LANES = {"train.lanes": 3, "train.micro_tokens_max": 40}
LANES_AND_TEXTS = {**LANES, "data.pretrain_dataset": "inputs/data/ptx.jsonl", "actor.ptx_coef": 0.3}
ppo("lanes.grpo_and_texts", LANES_AND_TEXTS)
ppo("lanes.two_threads", LANES_AND_TEXTS, {"train.threads": 2}, like="lanes.grpo_and_texts")
ppo("lanes.critic_and_lora", LANES, CRITIC, {"actor.lora.rank": 4, "train.lanes": 4})
ppo("lanes.two_ranks", LANES_AND_TEXTS, CAF, {"actor.ranks": 2}, like="lanes.grpo_and_texts")
supervised("lanes.sft", "sft", ANSWERS, {"train.lanes": 3})
supervised("lanes.dpo", "dpo", PAIRS, {"train.lanes": 2, "train.batch_size": 6})

# --- several processes: the same bits as one ----------------------------------------------------------------
ppo("processes.grpo.one", KL, EVAL)
ppo("processes.grpo", KL, EVAL, CAF, {"rollout.generators": 2}, like="processes.grpo.one")
EVERY = {**CRITIC, **MODELS, **KL_REWARD, "algo.kl.estimator": "k1", "reward.weights": "[1, 0.5, -0.25]"}
ppo("processes.critic.one", EVERY)
ppo("processes.critic", EVERY, CAF, like="processes.critic.one")
PYTHON = {**NO_RULE, "reward.python": "inputs/data/reward.py", "actor.lora.rank": 4}
ppo("processes.python_lora.one", PYTHON)
ppo("processes.python_lora", PYTHON, CAF, like="processes.python_lora.one")
BF16 = {"actor.param_dtype": "bf16", "algo.dynamic_filtering_enable": True}
ppo("processes.bf16_filter.one", BF16)
ppo("processes.bf16_filter", BF16, CAF, {"rollout.generators": 2, "rollout.enable_sleep": True},
    like="processes.bf16_filter.one")

TEACHERS = {"teacher.model_name_or_path": "inputs/other,inputs/model", "teacher.domain_key": "datasource",
            "teacher.domains": "even,other", "teacher.coef": 0.5}
ppo("teacher.beside_rewards", TEACHERS, KL)
ppo("teacher.processes", TEACHERS, KL, CAF, like="teacher.beside_rewards")
ppo("teacher.alone", {"teacher.model_name_or_path": "inputs/other", "teacher.reward_coef": 0}, NO_RULE)

# --- supervised methods ---------------------------------------------------------------------------------------
WITH = {"sft": ANSWERS, "pretrain": TEXTS, "rm": PAIRS, "dpo": PAIRS, "ipo": PAIRS, "cdpo": PAIRS,
        "kto": RATED}
for method, rows in WITH.items():
    supervised(f"{method}.plain", method, rows)
    supervised(f"{method}.evaluated", method, rows,
               {"eval.dataset": rows["data.dataset"], "eval.steps": 1, "train.max_epochs": 2,
                "train.max_steps": 5, "train.micro_tokens_max": 512,
                "ckpt.best_metric_key": "-eval/loss", "ckpt.save_steps": 1})
    supervised(f"{method}.bf16_checkpointing", method, rows,
               {"actor.param_dtype": "bf16", "actor.gradient_checkpointing_enable": True,
                "train.threads": 2})
    supervised(f"{method}.lora", method, rows, {"actor.lora.rank": 4})
DIALOGUES = {"data.dataset": "inputs/data/dialogues.jsonl", "train.micro_tokens_max": 128}
supervised("sft.dialogues", "sft", DIALOGUES)
supervised("sft.multiturn", "sft", DIALOGUES, {"data.multiturn": True})
supervised("sft.drop_too_long", "sft", DIALOGUES, {"data.max_len": 70, "data.drop_too_long": True})
supervised("sft.template", "sft", ANSWERS, {"data.input_template": "Q: {} A:",
                                            "actor.freeze": "embed_tokens,layers.0."})
supervised("sft.two_files", "sft",
           {"data.dataset": "inputs/data/answers.jsonl,inputs/data/more_answers.jsonl",
            "data.probs": "[0.75, 0.25]", "data.max_samples": 10, "actor.adam.weight_decay": 0.1})
supervised("sft.alpaca", "sft", {"data.dataset": "inputs/data/alpaca.json"})
supervised("sft.columns", "sft", {"data.dataset": "inputs/data/pairs.jsonl",
                                  "data.output_key": "rejected"})
supervised("dpo.sharegpt", "dpo", {"data.dataset": "inputs/data/sharegpt_pairs.jsonl",
                                   "train.micro_tokens_max": 128})
supervised("dpo.columns", "dpo", PAIRS, {"data.chosen_key": "rejected",
                                         "data.rejected_key": "chosen"})
supervised("rm.margin", "rm", PAIRS, {"data.margin_key": "margin"})
supervised("rm.goes_on", "rm", PAIRS, {"actor.model_name_or_path": "inputs/rm-a"})
CHAT_PAIRS = {"data.dataset": "inputs/data/chat_pairs.jsonl"}
supervised("dpo.chats_and_nll", "dpo", CHAT_PAIRS, {"dpo.beta": 0.3, "dpo.nll_loss_coef": 0.2})
supervised("dpo.other_reference", "dpo", PAIRS, {"ref.model_name_or_path": "inputs/other"})
supervised("ipo.length_mean", "ipo", PAIRS, {"dpo.length_mean": True})
for method in ("orpo", "simpo", "cpo"):
    supervised(f"{method}.plain", method, PAIRS)
supervised("dpo.aot", "dpo", PAIRS, {"dpo.loss": "aot"})
supervised("cdpo.smoothing", "cdpo", PAIRS, {"dpo.label_smoothing": 0.3})
supervised("kto.weights", "kto", RATED, {"kto.beta": 0.5, "kto.desirable_weight": 1.25,
                                         "kto.undesirable_weight": 0.75,
                                         "ref.model_name_or_path": "inputs/other"})
TEACHER = {"teacher.model_name_or_path": "inputs/other"}
supervised("distill.plain", "distill", ANSWERS, TEACHER, {"eval.dataset": ANSWERS["data.dataset"]})
supervised("distill.divergence", "distill", ANSWERS, TEACHER,
           {"distill.coef": 1, "distill.beta": 0.3, "distill.temperature": 0.9, "actor.lora.rank": 4})
for family in tiny.FAMILIES:
    supervised(f"family.{family}.sft", "sft", ANSWERS,
               {"actor.model_name_or_path": f"inputs/family/{family}"},
               {"actor.aux_loss_coef": 0.05} if family.endswith("_moe") else {})
supervised("family.phi3.lora", "dpo", PAIRS, {"actor.model_name_or_path": "inputs/family/phi3",
                                              "actor.lora.rank": 4})

# --- runs that were interrupted ------------------------------------------------------------------------------
EVERYTHING = {**FLAT, **CRITIC, **KL_REWARD, **MODELS, **EVAL, "algo.kl.target": 0.5,
              "algo.kl.horizon": 100, "reward.normalize": "running", "train.enable_ema": True,
              "data.pretrain_dataset": "inputs/data/ptx.jsonl",
              "algo.dynamic_filtering_enable": True, "algo.dynamic_filtering_range": "[-0.1, 1.2]"}
in_two_parts("resume.grpo", "ppo", PPO, FLAT, KL)
in_two_parts("resume.everything", "ppo", PPO, EVERYTHING)
in_two_parts("resume.lora", "ppo", PPO, FLAT, {"actor.lora.rank": 4})
in_two_parts("resume.processes", "ppo", PPO, FLAT, CRITIC, CAF, {"rollout.generators": 2})
for method, rows in WITH.items():
    in_two_parts(f"resume.{method}", method, SUPERVISED, FLAT_SUPERVISED, rows)
in_two_parts("resume.bco", "bco", SUPERVISED, FLAT_SUPERVISED, RATED)
in_two_parts("resume.teacher", "ppo", PPO, FLAT, TEACHERS)
in_two_parts("resume.distill", "distill", SUPERVISED, FLAT_SUPERVISED, ANSWERS, TEACHER)
in_two_parts("resume.advantage_file", "ppo", PPO, FLAT, {"algo.advantage_file": "inputs/data/advantage.py"})
LONG = {"train.max_steps": 8, "ckpt.save_steps": 1}
ppo("killed.grpo.whole", LONG, KL, {"ckpt.save_steps": 0})
ppo("killed.grpo", LONG, KL, kill=True, like="killed.grpo.whole")
supervised("killed.dpo.whole", "dpo", PAIRS, LONG, {"ckpt.save_steps": 0})
supervised("killed.dpo", "dpo", PAIRS, LONG, kill=True, like="killed.dpo.whole")
STEPS = {"data.dataset": "inputs/data/steps.jsonl", "prm.placeholder_token": "#", "prm.reward_tokens": "+,-",
         "eval.dataset": "inputs/data/steps.jsonl", "eval.steps": 2}
supervised("killed.prm.whole", "prm", STEPS, LONG, {"ckpt.save_steps": 0})
supervised("killed.prm", "prm", STEPS, LONG, kill=True, like="killed.prm.whole")
# Single letters part the steps, so that random text has many.
PROCESS = {"reward.process.model_name_or_path": "inputs/prm", "reward.process.step_separator": "u",
           "rollout.max_new_tokens": 24, "reward.weights": "1,0.5"}
ppo("killed.process.whole", LONG, PROCESS, {"ckpt.save_steps": 0})
ppo("killed.process", LONG, PROCESS, kill=True, like="killed.process.whole")
ppo("processes.process", LONG, PROCESS, {"ckpt.save_steps": 0}, CAF, like="killed.process.whole")
ppo("processes.process_ranks.one", PROCESS, {"train.lanes": 2})
ppo("processes.process_ranks", PROCESS, {"train.lanes": 2, "actor.ranks": 2}, CAF, like="processes.process_ranks.one")
ppo("reward.process_gae", CRITIC, PROCESS, NO_RULE, {"reward.weights": None})
ppo("reward.process_min", PROCESS, {"reward.process.reduce": "min", "reward.formula": "min(prm, rest)"})
BRANCH = {**PPO, **FLAT, **KL, "run.path": "OUT/first", "train.max_steps": 1}
add("resume.branch", ["train", "ppo", *words(BRANCH)],
    ["train", "ppo", *words({**BRANCH, "resume": "OUT/first/ckpt/step_000001", "run.path": "OUT/run",
                             "algo.objective": "cispo", "train.max_steps": 3})])

# --- runs that an earlier version began: tests/data/old_run -----------------------------------------------------
LEAST = {"actor.model_name_or_path": "inputs/least", "train.max_steps": 4, "ckpt.save_steps": 2}
OLD = {
    "grpo": ("ppo", {**PPO, **LEAST, **KL, "reward.rule_pattern": "[A-Za-z<>()]"}),
    "critic": ("ppo", {**PPO, **LEAST, **EVERYTHING, "reward.model_name_or_path": "inputs/least-rm",
                       "actor.lr_warmup_ratio": 0.03, "critic.min_lr_ratio": 0.1}),
    "lora": ("ppo", {**PPO, **LEAST, "actor.lora.rank": 2}),
    "sft": ("sft", {**SUPERVISED, **LEAST, **ANSWERS}),
    "dpo": ("dpo", {**SUPERVISED, **LEAST, **PAIRS}),
}
for name, (method, keys) in OLD.items():
    command = ["train", method, *words(keys)]
    add(f"old_run.{name}.whole", command, keys=keys)
    add(f"old_run.{name}", command, keys=keys, old=name, like=f"old_run.{name}.whole")

# --- recipes: as they stand, with small batches ------------------------------------------------------------------
RECIPE_PPO = {key: PPO[key] for key in
              ("run.path", "train.threads", "logger.tensorboard", "actor.model_name_or_path",
               "data.prompt_dataset", "data.prompt_max_len", "rollout.batch_size",
               "rollout.n_samples_per_prompt", "rollout.max_new_tokens", "train.batch_size",
               "train.max_steps", "cluster.transport")}
RULE = {"reward.rule": "regex", "reward.rule_pattern": "[A-Za-z<>()]{2}"}
for recipe in ("grpo_paper", "dr_grpo", "rloo_paper", "reinforce_pp_baseline", "gspo", "cispo"):
    add(f"recipe.{recipe}", ["train", "ppo", f"configs/{recipe}.yaml", *words({**RECIPE_PPO, **RULE})])
add("recipe.dapo", ["train", "ppo", "configs/dapo.yaml",
                    *words({**RECIPE_PPO, **RULE, "reward.overlong_buffer_len": 3})])
ONE = {"rollout.n_samples_per_prompt": 1, "rollout.batch_size": 8, "train.batch_size": 4}
add("recipe.reinforce_pp", ["train", "ppo", "configs/reinforce_pp.yaml",
                            *words({**RECIPE_PPO, **RULE, **ONE})])
for recipe in ("ppo_openrlhf", "ppo_paper"):
    add(f"recipe.{recipe}", ["train", "ppo", f"configs/{recipe}.yaml",
                             *words({**RECIPE_PPO, **ONE, "reward.model_name_or_path": "inputs/rm-a"})])
RECIPES = ("bco", "cdpo", "cispo", "cpo", "dapo", "decoupled_async", "demo_arithmetic", "dpo", "dpo_aot",
           "dpo_robust", "dr_grpo", "gpg", "grpo_code", "grpo_math", "grpo_paper", "grpo_process", "gspo", "ipo", "kto", "maxrl", "online_dpo", "opo", "orpo",
           "ppo_openrlhf", "ppo_paper", "pretrain", "prm", "reinforce_pp", "reinforce_pp_baseline", "rloo_paper", "rm",
           "sft", "simpo", "vtrace_async", "distill", "distill_on_policy")
add("recipe.values", *[["config", "show", f"configs/{recipe}.yaml"] for recipe in RECIPES])

# --- programs that work on files ---------------------------------------------------------------------------------
SAMPLE = ["--max-new-tokens", "12", "--threads", "1", "--json"]
for family in tiny.FAMILIES:
    model = ["generate", "--model", f"inputs/family/{family}", *SAMPLE]
    add(f"family.{family}.generate", [*model, "--prompt", "one and two are", "--n", "3"],
        [*model, "--prompt-token-ids", "1,65,66,67,65,66,67,200", "--temperature", "0"])
for dtype in ("f32", "bf16", "int8"):
    add(f"generate.{dtype}", ["generate", "--model", "inputs/model", "--prompt", "3+3=", "--n", "4",
                              "--dtype", dtype, *SAMPLE])
add("generate.sampling", *[["generate", "--model", "inputs/model", "--prompt", "3+3=", "--n", "4",
                            *SAMPLE, *flags] for flags in
                           (["--top-p", "0.8"], ["--top-k", "10", "--seed", "3"], ["--min-p", "0.1"],
                            ["--stop", "a", "--temperature", "0.5"])])
GENERATE = ["generate", "--model", "inputs/model", "--data", "inputs/data/train.jsonl", "--n", "3",
            "--max-new-tokens", "10", "--max-num-seqs", "7", "--out", "OUT/answers.jsonl"]
add("generate.data", GENERATE, ["generate", "--model", "inputs/model", "--data",
                                "inputs/data/chats.jsonl", "--n", "2", "--max-new-tokens", "6",
                                "--json", "--out", "OUT/chats.jsonl"])
SCORE = ["score", "--data", "OUT/answers.jsonl", "--threads", "1"]
add("score.model", GENERATE, [*SCORE, "--model", "inputs/rm-a", "--out", "OUT/scored.jsonl"],
    [*SCORE, "--model", "inputs/rm-a", "--stored", "--best-of-n", "--out", "OUT/best.jsonl"],
    [*SCORE, "--model", "inputs/rm-a", "--pairs", "--out", "OUT/pairs.jsonl"],
    [*SCORE, "--model", "inputs/rm-b", "--csft", "<rm_score>: {:.2f}", "--normalize-reward",
     "--out", "OUT/conditional.jsonl"])
add("score.rules", GENERATE,
    [*SCORE, "--rule", "regex", "--pattern", "[a-z]", "--label-key", "answer",
     "--out", "OUT/regex.jsonl"],
    [*SCORE, "--rule", "exact", "--label-key", "answer", "--out", "OUT/exact.jsonl"],
    [*SCORE, "--python", "inputs/data/reward.py", "--pairs", "--out", "OUT/python.jsonl"])
add("eval.model", ["eval", "--model", "inputs/model", "--data", "inputs/data/train.jsonl",
                   "--label-key", "answer", "--rule", "regex", "--pattern", "[A-Za-z]{2}", "--n", "4",
                   "--k", "1,2,4", "--max-new-tokens", "8", "--threads", "1", "--json",
                   "--reward-model", "inputs/rm-a", "--out", "OUT/samples.jsonl"])
add("eval.reward_model", ["eval", "--reward-model", "inputs/rm-a", "--data", "inputs/data/pairs.jsonl",
                          "--input-key", "input", "--json", "--out", "OUT/pairs.jsonl"])
add("merge_lora", ["train", "sft", *words({**SUPERVISED, **ANSWERS, "actor.lora.rank": 4})],
    ["merge-lora", "--model", "inputs/model", "--adapter", "OUT/run/ckpt/step_000003/adapter",
     "--output", "OUT/merged"],
    ["merge-lora", "--model", "inputs/model", "--adapter", "OUT/run/ckpt/step_000003/adapter",
     "--dtype", "bf16", "--output", "OUT/merged_bf16"])
add("data.arithmetic", ["data", "arithmetic", "--out", "OUT/arithmetic", "--seed", "3"])
