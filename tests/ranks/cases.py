"""The cases of the matrix: method, kind of model, ranks, stage; and the command lines of their runs. Keys and
inputs are those of the record (tests/record)."""

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/record"))
import runs  # noqa: E402
import tiny  # noqa: E402

METHODS = ("sft", "dpo", "rm", "kto", "grpo", "ppo", "distill")
KINDS = ("plain", "lora", "experts")
RANKS = (2, 3, 4, 8)
STAGES = (0, 1, 2, 3)
STEPS = 8        # of a run of the matrix
FEW_STEPS = 2    # of a run of the pairs in `./dev test`
BOUND = 2        # of a run whose generators are ahead


@dataclass(frozen=True)
class Leg:
    """How a run is started: once, or again after a kill. One rank divides nothing, so it has stage 0. On
    cuda, each rank has an (emulated) device, and moments are in the host's memory."""
    ranks: int = 1
    stage: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class Case:
    method: str
    kind: str
    legs: tuple = (Leg(),)
    bound: int = 0
    steps: int = STEPS

    @property
    def samples(self):
        return self.method in ("grpo", "ppo")

    @property
    def alone(self):
        """The run in one process, killed by nobody, that this one must equal."""
        return Case(self.method, self.kind, steps=self.steps)

    @property
    def name(self):
        text = f"{self.method}.{self.kind} ranks {self.list('ranks')} stage {self.list('stage')}"
        text += " on cuda" if self.device == "cuda" else ""
        return text + (f" bound {self.bound}" if self.bound else "") + f" steps {self.steps}"

    @property
    def device(self):
        return self.legs[-1].device

    def list(self, what):
        return ",".join(str(getattr(leg, what)) for leg in self.legs)

    def key(self):
        """The columns of the table that say which case this is."""
        return {"method": self.method, "kind": self.kind, "bound": str(self.bound),
                "ranks": self.list("ranks"), "stage": self.list("stage"), "device": self.device,
                "steps": str(self.steps)}


def pairs(steps=FEW_STEPS):
    """28 cases that hold every pair of values of method, kind, ranks and stage."""
    return [Case(method, KINDS[(m + 2 * r) % 3], (Leg(RANKS[r], STAGES[(m + r) % 4]),), steps=steps)
            for m, method in enumerate(METHODS) for r in range(len(RANKS))]


def journeys():
    """Runs that go from 4 to 2 to 8 ranks over two kills, each leg at a stage of its own."""
    cases = []
    for c, (method, kind) in enumerate(itertools.product(METHODS, KINDS)):
        legs = tuple(Leg(ranks, STAGES[(c + at) % 4]) for at, ranks in enumerate((4, 2, 8)))
        bounds = (0, BOUND) if method in ("grpo", "ppo") else (0,)
        cases += [Case(method, kind, legs, bound) for bound in bounds]
    return cases


def offloads():
    """Runs on emulated devices, which are slow, whose master weights and moments are in the host's memory. A
    device computes no experts and no distillation."""
    return [Case(method, kind, (Leg(ranks, stage, "cuda"),), steps=FEW_STEPS)
            for method in METHODS if method != "distill"
            for kind in ("plain", "lora") for ranks, stage in ((1, 0), (2, 0), (2, 3))]


def daily():
    """The cases of `./dev test`."""
    return pairs()


def matrix():
    """All cases, those first that say most: the pairs, the journeys, the rest. 21 columns of 16 cases, 27
    journeys, 36 on devices (distillation has none)."""
    whole = [Case(method, kind, (Leg(ranks, stage),)) for ranks, stage, method, kind in
             itertools.product(RANKS, STAGES, METHODS, KINDS)]
    return list(dict.fromkeys(pairs(STEPS) + journeys() + whole + offloads()))


# --- command lines --------------------------------------------------------------------------------------

ROWS = "inputs/data/ranks.jsonl"
# 20 rows, or 16 samples, a step in small micro-batches: two rounds of 8 lanes.
COMMON = {"train.lanes": 8, "train.micro_tokens_max": 16}
SUPERVISED = {**runs.SUPERVISED, **COMMON, "data.dataset": ROWS, "eval.dataset": ROWS, "eval.steps": 2,
              "train.batch_size": 20, "train.max_epochs": 9, "data.max_len": 16}
PPO = {**runs.PPO, **COMMON, **runs.KL, "train.batch_size": 16, "rollout.max_new_tokens": 8}
BY_METHOD = {
    "sft": SUPERVISED,
    "distill": {**SUPERVISED, **runs.TEACHER},
    "kto": SUPERVISED,
    "dpo": {**SUPERVISED, "data.prompt_key": "input"},
    "rm": {**SUPERVISED, "data.prompt_key": "input"},
    "grpo": PPO,
    "ppo": {**PPO, **runs.CRITIC, **runs.KL_REWARD, "critic.save_value_network": True},
}
BY_KIND = {
    "plain": {},
    "lora": {"actor.lora.rank": 4},
    "experts": {"actor.model_name_or_path": "inputs/family/qwen2_moe", "actor.aux_loss_coef": 0.1},
}


def write_rows(folder):
    """Rows that all supervised methods can read, of many lengths."""
    sums = [(a, b) for a in range(6) for b in range(5)]
    tiny.write_rows(folder / "ranks.jsonl",
                    [{"input": f"{a}+{b}=", "output": f"{a + b}" + "!" * (a * b % 7),
                      "chosen": f"{a + b}", "rejected": "fish"[: 1 + b % 4], "label": (a + b) % 2 == 0}
                     for a, b in sums])


def words_of(case, leg, run):
    """The command that starts the run at `run`, or goes on with it, on these ranks."""
    keys = {**BY_METHOD[case.method], **BY_KIND[case.kind], "run.path": run,
            "train.max_steps": case.steps, "ckpt.save_steps": 2}
    if leg.ranks > 1:
        keys.update({"cluster.transport": "caf", "cluster.head_wait_s": 0, "train.threads": 2,
                     "actor.ranks": leg.ranks, "train.zero_stage": leg.stage})
        if case.method == "ppo":
            keys["critic.ranks"] = leg.ranks
    if leg.device == "cuda":
        devices = ",".join(f"cuda:{rank}" for rank in range(leg.ranks))
        keys.update({"actor.device": devices, "train.offload": True})
        if case.method == "ppo":
            keys["critic.device"] = devices
    if case.bound:  # both generators are ahead; what they gave is kept, to learn from it again
        keys.update({"train.staleness_max": case.bound, "run.keep_experience": True,
                     "rollout.generators": 2 if leg.ranks > 1 else 1})
    return ["train", "ppo" if case.samples else case.method, *runs.words(keys)]
