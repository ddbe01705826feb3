"""Prints what a run has to show: 0 for each difference of log-probs between engine and trainer, and its rewards.
Exit status 1 when a difference is not 0."""
import json
import sys

with open(sys.argv[1] + "/metrics.jsonl", encoding="utf-8") as lines:
    rows = [json.loads(line) for line in lines]
kl = [row["kl/rollout_train"] for row in rows if "kl/rollout_train" in row]
rewards = [row["reward/mean"] for row in rows if "reward/mean" in row]
print(json.dumps({"updates": len(rows), "kl_max": max(kl, default=None), "kl_min": min(kl, default=None),
                  "reward_first": rewards[:1], "reward_last": rewards[-1:]}))
sys.exit(0 if kl and all(value == 0 for value in kl) else 1)
