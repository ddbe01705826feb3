"""What must hold when a run is over: the bits of a calm run, or those of a run that learns again from
the same experience log."""

import hashlib
import re
import shutil

from company import Company, json_rows
from plan import STEPS, UPDATES

LIMIT_S = 300  # of a run without faults, on a machine with much to do

# What differs between two runs of the same bits: clocks, and how many were up or waiting at a moment.
VARIES = re.compile(r"time(/.*)?|perf/.*|async/queue|async/generators")


def bits(run, method="ppo"):
    """What a repetition must give again, by name: trained weights and moments, rollouts without the
    attempt that gave the tokens, metrics without times. Evaluations of a supervised run have lines of
    their own."""
    found = {}
    last = UPDATES if method == "ppo" else STEPS
    folder = run / "ckpt" / f"step_{last:06d}"
    for file in sorted(folder.rglob("*.safetensors")):
        found[str(file.relative_to(folder))] = hashlib.sha256(file.read_bytes()).hexdigest()
    for file in sorted((run / "rollouts").glob("step_*.jsonl")):
        found[file.name] = [{name: value for name, value in row.items() if name != "attempt"}
                            for row in json_rows(file)]
    for row in json_rows(run / "metrics.jsonl"):
        kind = "metrics" if method == "ppo" or "policy/loss" in row else "evaluation"
        found[f"{kind} {row['step']}"] = {name: value for name, value in row.items()
                                           if not VARIES.fullmatch(name)}
    return found


def lines_of_steps(run):
    """The steps that metrics.jsonl has, in its order, and those after which it has evaluations."""
    rows = json_rows(run / "metrics.jsonl")
    steps = [row["step"] for row in rows if "policy/loss" in row]
    return steps, [row["step"] for row in rows if "policy/loss" not in row]


def differences(one, other):
    """Names of what differs, weights first; of metrics, which."""
    found = []
    for name in {**one, **other}:
        left, right = one.get(name), other.get(name)
        if left == right:
            continue
        if isinstance(left, dict) and isinstance(right, dict):
            name += f" ({told(differences(left, right), 2)})"
        found.append(name)
    return found


def told(names, shown=4):
    """The first few say enough."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


class Calm:
    """Runs without faults, made once for each algorithm and number of lanes. One generator on one
    host, one rank: neither their number nor their place may change a bit at bound 0."""

    def __init__(self, build, files, folder):
        self.build, self.files, self.folder = build, files, folder
        self.known = {}

    def bits_of(self, plan):
        supervised = plan.method != "ppo"  # always two lanes
        kind = (plan.method, plan.critic, 2 if supervised else plan.ranks)
        if kind not in self.known:
            place = self.folder / f"calm_{'_'.join(map(str, kind))}"
            shutil.rmtree(place, ignore_errors=True)
            run = place / "run"
            place.mkdir()
            words = plan.words() if supervised else one_generator(plan.words())
            self.known[kind] = bits_after(self.build, self.files, run, words, plan.method)
        return self.known[kind]


def one_generator(words):
    at = words.index("--rollout.generators") + 1
    return words[:at] + ["1"] + words[at + 1:]


def bits_after(build, files, run, words, method="ppo"):
    """Of a run to its end; RuntimeError when it does not end well."""
    company = Company(build, files, run, words, method=method)
    try:
        status = company.wait(LIMIT_S)
        if status != 0:
            raise RuntimeError(f"a run without faults ended with {status}: {company.output()[-1500:]}")
        if company.crashed():
            raise RuntimeError("a process crashed in a run without faults")
        return bits(run, method)
    finally:
        company.end()


def learned_again(stage):
    """Another run learns from a copy of the experience log alone; what of it differs, in words."""
    run = stage.folder / "again" / "run"
    run.mkdir(parents=True)
    shutil.copytree(stage.company.run / "experience", run / "experience")
    again = bits_after(stage.company.build, stage.company.files, run,
                       one_generator(stage.plan.words()))
    whole = f"of {UPDATES} updates after the checkpoint are in the experience log"
    if whole not in (run / "troupe.log").read_text(errors="replace"):
        return "the experience log is not whole"
    differing = differences(bits(stage.company.run), again)
    return f"other bits when it learns again from its log: {told(differing)}" if differing else ""


def judge(stage, status, calm):
    """What is wrong with a run that is over, in words; and what its ledger says."""
    if status is None:
        return ["hung"], {}
    if status != 0:
        return [f"ended with status {status}"], {}
    if stage.plan.method != "ppo":
        return judge_steps(stage, calm), {"lost": 0, "doubled": 0}
    bad = []
    ledger = stage.company.check()
    if not ledger.get("clean"):
        bad.append(f"ledger: {ledger}")
    if ledger.get("updates") != UPDATES:
        bad.append(f"{ledger.get('updates')} updates in the ledger")
    steps = [row["step"] for row in json_rows(stage.company.run / "metrics.jsonl")]
    if steps != list(range(1, UPDATES + 1)):
        bad.append("metrics.jsonl is not one line an update")
    try:
        youngest, oldest = stage.company.ages()
        if youngest < 0 or oldest > stage.plan.bound:
            bad.append(f"tokens are {youngest} to {oldest} updates old")
        if stage.plan.bound == 0 and not stage.plan.attach:
            differing = differences(calm.bits_of(stage.plan), bits(stage.company.run))
            if differing:
                bad.append(f"other bits than a calm run's: {told(differing)}")
        elif wrong := learned_again(stage):
            bad.append(wrong)
    except (RuntimeError, ValueError, OSError) as problem:
        bad.append(str(problem))
    return bad, ledger


def judge_steps(stage, calm):
    """Of a supervised run: each step and each evaluation once, in order, with the bits of a calm run."""
    bad, run = [], stage.company.run
    steps, evaluations = lines_of_steps(run)
    if steps != list(range(1, STEPS + 1)):
        bad.append("metrics.jsonl is not one line a step")
    if evaluations != list(range(0, STEPS + 1, 10)):
        bad.append("metrics.jsonl is not one line an evaluation")
    try:
        differing = differences(calm.bits_of(stage.plan), bits(run, stage.plan.method))
        if differing:
            bad.append(f"other bits than a calm run's: {told(differing)}")
    except (RuntimeError, OSError) as problem:
        bad.append(str(problem))
    return bad
