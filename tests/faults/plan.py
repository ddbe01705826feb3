"""What a seed stands for: the configuration of a run, and the faults that strike it. The same seed
gives the same plan everywhere. Only the moments differ a little from run to run: they are counted in
updates of the run and seconds after them."""

import random
from dataclasses import dataclass, field

UPDATES = 200
STEPS = 300  # of a supervised run

SUPERVISED = ("sft", "dpo")
FAR_NODES = ["far", "far-2"]

# Where the generators are: one or two on the head's host, one there and one on another host, or all
# sampling on another host.
PLACES = ["one", "two", "both hosts", "other host"]
FAR = PLACES[2:]

KINDS = ["kill", "freeze", "error", "slow", "cut", "flap", "disk", "head killed", "head gone",
         "head frozen"]
WEIGHTS = [5, 4, 4, 2, 2, 2, 2, 3, 1, 2]
LINK = {"slow", "cut", "flap"}
HEAD = {"head killed", "head gone", "head frozen"}
TWICE = {"kill", "freeze"}  # may strike two processes at once

# What strikes a supervised run, which has no generators and is on one host.
OF_TRAINERS = {"kill": 6, "freeze": 5, "disk": 3, "head killed": 4, "head gone": 1, "head frozen": 2}

ERRORS = ["resources", "internal", "data", "numeric", "deadline", "peer_lost", "closed", "overloaded",
          "not_found", "disk_full", "invalid_argument", "configuration", "unsupported",
          "interrupted"]


@dataclass(frozen=True)
class Fault:
    """`at`: how many updates are done when it strikes, and `after_s` seconds later. 0 updates: the
    seconds count from the start of the victim's process."""
    kind: str
    at: int
    after_s: float
    more: dict = field(default_factory=dict)

    def text(self):
        words = [f"{name} {value}" for name, value in self.more.items()]
        when = "" if self.kind == "error" else f" at {self.at}+{self.after_s:.2f}s"
        return self.kind + when + "".join(f", {word}" for word in words)


@dataclass(frozen=True)
class Plan:
    seed: int
    bound: int
    place: str
    critic: bool
    attach: tuple  # (attached after so many updates, detached after so many), or ()
    faults: tuple
    ranks: int = 1  # of the policy, and of the critic
    method: str = "ppo"
    relays: bool = False  # two nodes on the other host, of which one passes weights on

    def far(self):
        return self.place in FAR

    def far_nodes(self):
        if not self.far():
            return []
        return FAR_NODES if self.relays else FAR_NODES[:1]

    def updates(self):
        """Or steps."""
        return UPDATES if self.method == "ppo" else STEPS

    def configuration(self):
        if self.method != "ppo":
            return f"{self.method}, {self.ranks} ranks"
        parts = [f"bound {self.bound}", f"generators {self.place}"]
        if self.relays:
            parts.append("relays")
        if self.critic:
            parts.append("critic")
        if self.ranks > 1:
            parts.append(f"{self.ranks} ranks")
        if self.attach:
            parts.append(f"attach {self.attach[0]} to {self.attach[1]}")
        return ", ".join(parts)

    def words(self):
        """The flags of `troupe train`, without those of the hosts."""
        if self.method != "ppo":
            return ["--train.max_steps", str(STEPS), "--ckpt.save_steps", "7", "--eval.steps", "10",
                    "--train.lanes", "2"]
        local = {"one": 1, "two": 2, "both hosts": 1, "other host": 0}[self.place]
        words = ["--train.max_steps", str(UPDATES), "--train.staleness_max", str(self.bound),
                 "--rollout.max_new_tokens", "16", "--rollout.generators", str(local),
                 "--ckpt.save_steps", "3", "--run.keep_experience", "true"]
        if self.critic:
            words += ["--algo.advantage.estimator", "gae", "--algo.advantage.lambd", "0.95",
                      "--critic.adam.lr", "1e-3", "--critic.save_value_network", "true"]
        if self.ranks > 1:
            words += ["--train.lanes", str(self.ranks)]
        return words

    def rank_words(self):
        """The flags of the ranks, which change no bit; one rank of a supervised run has a process of
        its own, too."""
        if self.method != "ppo":
            return ["--actor.ranks", str(self.ranks), "--cluster.transport", "caf"]
        if self.ranks == 1:
            return []
        words = ["--actor.ranks", str(self.ranks)]
        return words + (["--critic.ranks", str(self.ranks)] if self.critic else [])

    def sick(self):
        """The value of TROUPE_FAULTS; empty when no role answers with an error."""
        return ", ".join(fault.more["order"] for fault in self.faults if fault.kind == "error")


def plan_of(seed):
    return supervised_plan(seed) if method_of(seed) != "ppo" else ppo_plan(seed)


def method_of(seed):
    """From seed 301 on; the others are as they were."""
    rng = random.Random(f"method {seed}")
    return rng.choice(SUPERVISED) if seed > 300 and rng.random() < 0.6 else "ppo"


def supervised_plan(seed):
    rng = random.Random(f"fault campaign {seed}")
    kinds = kinds_of(rng, OF_TRAINERS)
    ranks = rng.choice([1, 2])
    victims = ["policy"] + rank_names(ranks, False)
    if len(kinds) == 2 and set(kinds) <= TWICE and ranks == 1:
        kinds = kinds[:1]
    at, after_s = moment(rng, STEPS)
    faults = strikes(rng, kinds, "", victims, at, after_s)
    return Plan(seed, 0, "", False, (), faults, ranks, method_of(seed))


def ppo_plan(seed):
    rng = random.Random(f"fault campaign {seed}")
    kinds = kinds_of(rng)
    place = rng.choice(FAR) if LINK & set(kinds) else rng.choices(PLACES, [3, 3, 2, 2])[0]
    bound = rng.choice([0, 2])
    critic = rng.random() < 0.25
    attach = ()
    if rng.random() < 0.25:
        attach = (rng.randrange(5, 40), rng.randrange(70, 120))
    ranks = ranks_of(seed)
    relays = seed > 300 and place in FAR
    victims = victims_of(place, critic, bool(attach)) + rank_names(ranks, critic)
    victims += FAR_NODES[1:] * 3 if relays else []
    at, after_s = moment(rng)
    faults = strikes(rng, kinds, place, victims, at, after_s)
    return Plan(seed, bound, place, critic, attach, faults, ranks, relays=relays)


def strikes(rng, kinds, place, victims, at, after_s):
    """The faults of these kinds, one soon after the other; none has the victim of another."""
    faults = []
    for kind in kinds:
        more = details(rng, kind, place, victims, len(kinds) > 1)
        faults.append(Fault(kind, at, after_s, more))
        victims = [name for name in victims if name != more.get("who")]
        after_s = round(after_s + rng.choice([0, 0, 0.05, 0.5]), 3)
    return tuple(faults)


def ranks_of(seed):
    """From seed 201 on half of the runs have two; the first 200 are as they were."""
    return 2 if seed > 200 and random.Random(f"ranks {seed}").random() < 0.5 else 1


def rank_names(ranks, critic):
    """Twice as likely victims as others."""
    names = [f"policy-{rank}" for rank in range(1, ranks)] * 2
    return names + ([f"critic-{rank}" for rank in range(1, ranks)] if critic else [])


def kinds_of(rng, weights=None):
    """One kind of fault, in a third of the runs two."""
    weights = weights or dict(zip(KINDS, WEIGHTS))
    kinds, shares = list(weights), list(weights.values())
    first = rng.choices(kinds, shares)[0]
    if rng.randrange(3) != 0:
        return [first]
    while True:
        second = rng.choices(kinds, shares)[0]
        if second == first and first not in TWICE or {first, second} <= HEAD:
            continue
        return [first, second]


def victims_of(place, critic, attach):
    names = ["policy", "reference", "reward"]
    names += {"one": ["generator-0"], "two": ["generator-0", "generator-1"],
              "both hosts": ["generator-0", "far", "far"], "other host": ["far", "far"]}[place]
    return names + (["critic"] if critic else []) + (["attach"] if attach else [])


def moment(rng, updates=UPDATES):
    """At the start, in the first half, or when the run is about to end."""
    share = rng.random()
    if share < 0.2:
        return 0, round(rng.random() * 0.5, 3)
    late = share < 0.3
    at = rng.randrange(updates - 3, updates + 1) if late else rng.randrange(1, updates // 2)
    return at, round(rng.random() * 0.05, 3)


def details(rng, kind, place, victims, beside_another):
    if kind == "kill":
        return {"who": rng.choice(victims)}
    if kind == "freeze":
        who = rng.choice(victims)
        lengths = [0.5, 1.5, 3, 6]
        # Whatever only the campaign started, nobody else replaces.
        replaced = who != "attach" and not (who in FAR_NODES and place == "other host")
        return {"who": who, "for_s": rng.choice(lengths + [0, 0] if replaced else lengths)}
    if kind == "error":
        return {"order": order(rng, place, 1 if beside_another else 2)}
    if kind == "slow":
        return {"mbit": rng.choice([1, 10, 100]), "for_s": rng.choice([3, 6, 10])}
    if kind == "cut":
        return {"towards": rng.choice(["head", "node"]), "for_s": rng.choice([0.5, 1.5, 3, 6, 12])}
    if kind == "flap":
        return {"times": rng.randrange(3, 7), "down_s": rng.choice([0.3, 1, 2.5]),
                "up_s": rng.choice([0.3, 1, 2]), "how": rng.choice(["held", "reset"])}
    if kind == "disk":
        return {"for_s": rng.choice([0.5, 2, 5])}
    if kind == "head killed":
        return {"pause_s": rng.choice([0, 0.5, 3])}
    if kind == "head frozen":
        return {"for_s": rng.choice([5, 15])}
    return {}


def order(rng, place, steps):
    """Errors to order. At most `steps` steps fail: a third failure could hit the same ticket, which
    would then be set aside for another prompt. A restarted process counts from 1 again."""
    roles = ["generator/0", "generator/1"] if place in ("two", "both hosts") else ["generator/0"]
    parts = [f"{rng.choice(roles)} step {rng.choice(ERRORS)} {rng.randrange(3, 1500)}"
             for _ in range(rng.randint(1, steps))]
    parts += [f"{rng.choice(roles)} fetch {rng.choice(ERRORS)} {rng.randrange(2, 80)}"
              for _ in range(rng.randint(0, 3))]
    return ", ".join(parts)
