"""Advantages for `--algo.advantage_file`: the group's mean as the baseline, as in Dr.GRPO, but the tokens of a long
sample share what a sample of the update's mean length would get. Samples that were cut by length are not learned
from.

    troupe train ppo run.yaml --algo.advantage_file docs/examples/length_advantage.py --algo.objective ppo
"""


def advantage(scores, groups, lengths, truncated):
    of_prompt = {}
    for group, score in zip(groups, scores):
        of_prompt.setdefault(int(group), []).append(float(score))
    typical = sum(lengths) / len(lengths)
    advantages, weights = [], []
    for score, group, length, cut in zip(scores, groups, lengths, truncated):
        others = of_prompt[int(group)]
        share = min(1.0, typical / length)
        advantages.append([share * (score - sum(others) / len(others))] * int(length))
        weights.append([0.0 if cut else 1.0] * int(length))
    return {"advantages": advantages, "weights": weights}
