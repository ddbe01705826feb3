"""A reward for `troupe train ppo ... --reward.python length_reward.py --data.label_key answer`.

One point for an answer that ends with the label, less up to half a point for length. The other
forms that a function may have are in docs/write_a_reward.md.
"""

LONG = 200  # characters


def reward(prompts, completions, answer, log_metric, **columns):
    right = [text.strip().endswith(label) for text, label in zip(completions, answer)]
    log_metric("right", [float(r) for r in right])
    return [float(r) - 0.5 * min(len(text), LONG) / LONG for r, text in zip(right, completions)]
