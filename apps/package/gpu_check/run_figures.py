"""Prints what a run has to show: 0 for each difference of log-probs between engine and trainer, its rewards and
its seconds an update. Exit status 1 when a difference is not 0."""
import json
import statistics
import sys

with open(sys.argv[1] + "/metrics.jsonl", encoding="utf-8") as lines:
    rows = [json.loads(line) for line in lines]


def values(key):
    return [row[key] for row in rows if key in row]


kl, rewards, seconds = values("kl/rollout_train"), values("reward/mean"), values("time/step")
# The first updates load kernels and record steps.
usual = seconds[len(seconds) // 5:]
print(json.dumps({"updates": len(rows), "kl_max": max(kl, default=None), "kl_min": min(kl, default=None),
                  "rewards": rewards[::max(1, len(rewards) // 10)],
                  "seconds_an_update": statistics.median(usual) if usual else None}))
sys.exit(0 if kl and all(value == 0 for value in kl) else 1)
