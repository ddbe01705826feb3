#!/usr/bin/env python3
"""What a student learns from a teacher, off policy and on policy, at equal tokens.

A tiny teacher learns two-digit sums from data; a smaller student learns them for a while, and is then taught: off
policy by `train distill` on the teacher's own answers, on policy by `train ppo` with the teacher's log-probs as
advantages, with the same number of answer tokens. Agreement: the share of held-out prompts to which student and
teacher give the same greedy answer. The learning rate of each way is chosen by a validation part on the first seed;
the table is of prompts that neither rate nor training has seen. About ten minutes on two cores.

    distill_study.py --troupe build/troupe --out /tmp/study
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "record"))
import tiny  # noqa: E402

TEACHER = tiny.sizes(96, 4, 4, 24, 256, 4)
STUDENT = tiny.sizes(48, 4, 4, 12, 128, 2)
ANSWER = 4                       # tokens: up to three digits and the end
STEPS, PROMPTS, SAMPLES = 120, 64, 4
RATES = {"off policy": (3e-4, 1e-3, 3e-3), "on policy": (3e-5, 1e-4, 3e-4)}


def run(args, *words):
    done = subprocess.run([args.troupe, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def newest_model(folder):
    return sorted((folder / "ckpt").glob("step_*"))[-1] / "model"


def problems(out, seed):
    """All sums of two-digit numbers below 60, split without a pair in two parts (a + b is b + a)."""
    rng = random.Random(seed)
    pairs = [(a, b) for a in range(10, 60) for b in range(a, 60)]
    rng.shuffle(pairs)
    parts = {"test": pairs[:300], "valid": pairs[300:500], "train": pairs[500:]}
    for name, part in parts.items():
        both = part + [(b, a) for a, b in part if a != b] if name == "train" else part
        tiny.write_rows(out / f"{name}.jsonl", [{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in both])


def random_model(folder, sizes, seed):
    """A Llama of these sizes with weights from N(0, 0.04), the byte tokenizer, and no end token but its own."""
    draw = random.Random(seed)
    tiny.write_model(folder, size=sizes)
    config = json.loads((folder / "config.json").read_text()) | {"eos_token_id": 256}
    tiny.write_json(folder / "config.json", config)
    tensors = {}
    for name, shape in tiny.shapes_of("llama", config, False).items():
        count = math.prod(shape)
        tensors[name] = (shape, [1.0] * count if "norm" in name else [draw.gauss(0, 0.04) for _ in range(count)])
    tiny.write_safetensors(folder / "model.safetensors", tensors)


def sft(args, out, name, sizes, seed, steps, lr):
    """A model of these sizes, from random weights."""
    start = out / f"{name}_start"
    if not start.exists():
        random_model(start, sizes, seed)
    run(args, "train", "sft", "--actor.model_name_or_path", start, "--data.dataset", out / "train.jsonl",
        "--data.input_key", "prompt", "--data.output_key", "answer", "--run.path", out / name,
        "--train.max_steps", steps, "--train.max_epochs", 1000, "--train.batch_size", 128, "--actor.adam.lr", lr,
        "--train.seed", seed, "--logger.tensorboard", "false", "--ckpt.max_num", 1)
    return newest_model(out / name)


def answers(args, out, model, part, name, *flags):
    file = out / f"{name}.jsonl"
    run(args, "generate", "--model", model, "--data", out / f"{part}.jsonl", "--input-key", "prompt",
        "--max-new-tokens", ANSWER, "--out", file, "--overwrite", *flags)
    return rows(file)


def agreement(args, out, model, teacher, part):
    """1 for each prompt to which both give the same greedy answer, else 0; and the same for the right answer."""
    greedy = ("--temperature", 0, "--n", 1)
    ours = answers(args, out, model, part, "ours", *greedy)
    theirs = answers(args, out, teacher, part, "theirs", *greedy)
    return ([int(a["response"] == b["response"]) for a, b in zip(ours, theirs)],
            [int(a["response"] == a["answer"]) for a in ours])


def off_policy(args, out, student, teacher, seed, lr, name):
    """Distils from the teacher's own samples, as many tokens as on policy."""
    text = out / "taught.jsonl"
    if not text.exists():
        made = answers(args, out, teacher, "train", "made", "--temperature", 1, "--n", 2, "--seed", seed)
        tiny.write_rows(text, [{"prompt": row["prompt"], "answer": row["response"]} for row in made if row["response"]])
    run(args, "train", "distill", "--actor.model_name_or_path", student, "--teacher.model_name_or_path", teacher,
        "--data.dataset", text, "--data.input_key", "prompt", "--data.output_key", "answer", "--distill.coef", 1,
        "--run.path", out / name, "--train.max_steps", STEPS, "--train.max_epochs", 1000, "--train.batch_size",
        PROMPTS * SAMPLES, "--actor.adam.lr", lr, "--train.seed", seed, "--logger.tensorboard", "false",
        "--ckpt.max_num", 1)
    tokens = sum(row.get("train/targets", 0) for row in rows(out / name / "metrics.jsonl"))
    return newest_model(out / name), tokens


def on_policy(args, out, student, teacher, seed, lr, name):
    """The teacher's log-probs of the student's samples as advantages; the reward is only measured."""
    run(args, "train", "ppo", "--actor.model_name_or_path", student, "--teacher.model_name_or_path", teacher,
        "--data.prompt_dataset", out / "train.jsonl", "--data.input_key", "prompt", "--data.label_key", "answer",
        "--data.prompt_max_len", 16, "--reward.rule", "exact", "--teacher.reward_coef", 0,
        "--rollout.batch_size", PROMPTS, "--rollout.n_samples_per_prompt", SAMPLES, "--rollout.max_new_tokens", ANSWER,
        "--algo.advantage.estimator", "dr_grpo", "--algo.objective", "ppo", "--run.path", out / name,
        "--train.max_steps", STEPS, "--train.num_episodes", 1000, "--actor.adam.lr", lr, "--train.seed", seed,
        "--logger.tensorboard", "false", "--ckpt.max_num", 1, "--cluster.transport", "loopback")
    lengths = [row.get("response/length_mean", 0) for row in rows(out / name / "metrics.jsonl")]
    return newest_model(out / name), sum(lengths) * PROMPTS * SAMPLES


def mean(values):
    return sum(values) / len(values)


def interval(values):
    """Of a mean: normal, over prompts of all seeds."""
    middle = mean(values)
    spread = math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1) / len(values))
    return f"{middle:.3f} [{middle - 1.96 * spread:.3f}, {middle + 1.96 * spread:.3f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--troupe", default="build/troupe")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    ways = {"off policy": off_policy, "on policy": on_policy}
    chosen, agree, right, tokens = {}, {}, {}, {}
    for seed in range(1, args.seeds + 1):
        out = args.out / f"seed{seed}"
        out.mkdir(parents=True, exist_ok=True)
        problems(out, seed)
        teacher = sft(args, out, "teacher", TEACHER, seed, 400, 2e-3)
        student = sft(args, out, "student", STUDENT, seed, 250, 3e-3)
        if not chosen:
            for way, teach in ways.items():
                scored = []
                for lr in RATES[way]:
                    model, _ = teach(args, out, student, teacher, seed, lr, f"{way[:3]}_{lr}".replace(" ", ""))
                    scored.append((mean(agreement(args, out, model, teacher, "valid")[0]), lr))
                    print(f"{way}, rate {lr}: agreement {scored[-1][0]:.3f} on the validation part", flush=True)
                chosen[way] = max(scored)[1]
        models = {"before": (student, 0), "teacher": (teacher, 0)}
        for way, teach in ways.items():
            models[way] = teach(args, out, student, teacher, seed, chosen[way], way.replace(" ", "_"))
        for name, (model, seen) in models.items():
            same, correct = agreement(args, out, model, teacher, "test")
            agree.setdefault(name, []).extend(same)
            right.setdefault(name, []).extend(correct)
            tokens[name] = tokens.get(name, 0) + seen
            print(f"seed {seed}, {name}: agreement {mean(same):.3f}, right {mean(correct):.3f}, {seen:.0f} tokens", flush=True)
    print("\n| student | learning rate | answer tokens | agreement with the teacher | right |\n|---|---|---|---|---|")
    for name in ("before", "off policy", "on policy", "teacher"):
        rate = f"{chosen[name]:g}" if name in chosen else ""
        print(f"| {name} | {rate} | {tokens[name] / args.seeds:.0f} | {interval(agree[name])} | {interval(right[name])} |")
    for name, base in (("off policy", "before"), ("on policy", "before"), ("on policy", "off policy")):
        print(f"{name} - {base}, paired: {interval([a - b for a, b in zip(agree[name], agree[base])])}")


if __name__ == "__main__":
    main()
