"""A run folder as a long run leaves it, written at once."""

import json
import math

SAMPLES = 16
METRICS = [f"{part}/figure_{i}" for part in ("reward", "policy", "kl", "time", "eval") for i in range(12)]


def write_long_run(folder, updates, megabytes):
    """`updates` rows of 60 metrics, and so many megabytes of rollouts."""
    (folder / "rollouts").mkdir(parents=True)
    with open(folder / "metrics.jsonl", "w") as out:
        for step in range(1, updates + 1):
            wave = math.sin(step / 500) + (step * 7919 % 1000) / 1000
            row = {"step": step, "time": 1.7e9 + step} | {name: wave + at for at, name in enumerate(METRICS)}
            out.write(json.dumps(row) + "\n")
    length = megabytes * 1_000_000 // (updates * SAMPLES) - 300
    response = ("so we carry <b>the one</b> & add " * (length // 32 + 1))[:length]
    row = {"attempt": 0, "prompt_id": 3, "prompt": "What is 17 + 25?", "response": response, "label": "42",
           "tokens": len(response) // 4, "reward_set": 0, "rewards": {"rule": 1.0}, "finish_reason": "eos",
           "truncated": False, "version_min": 1, "version_max": 1}  # fmt: skip
    for step in range(1, updates + 1):
        lines = [json.dumps({"step": step, "slot": i // 4, "sample": i % 4, "reward": float((step + i) % 2)} | row)
                 for i in range(SAMPLES)]
        (folder / "rollouts" / f"step_{step:06d}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "troupe.log").write_text("".join(
        f"2026-01-01T00:00:00.000+00:00 info checkpoint {step}\n" for step in range(updates)))
    (folder / "resolved_config.yaml").write_text('method: "ppo"\n')
    return folder
