"""Every file of docs/examples runs as its first lines say, on a tiny model: what a reader copies
works. The figures come from transformers where there is something to compare with."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import torch

from serve_test import BUILD, KEY, PATIENCE_S, folder, logprobs_of, model, serve, tokenizer  # noqa: F401

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"


def ended(words, **environment):
    return subprocess.run([str(word) for word in words], check=True, text=True, timeout=PATIENCE_S,
                          stdout=subprocess.PIPE, env={**os.environ, **environment}).stdout


# Run by tests/unit/actors/environment and agent_run_test.py.
OF_AGENTS = {"guess_environment.py", "calculator_environment.py", "openenv_server.py", "calculator_agent.py",
             "verifiers_agent.py"}


def test_every_example_is_run_here():
    assert {path.name for path in EXAMPLES.iterdir() if path.is_file()} - OF_AGENTS == {
        "README.md", "openai_client.py", "length_reward.py", "length_advantage.py", "best_of_n.sh"}


def test_the_openai_client_talks_and_scores(folder, model, tokenizer):  # noqa: F811
    with serve(folder, "--api-key", KEY) as url:
        out = ended([sys.executable, EXAMPLES / "openai_client.py", url, "What is 9 + 2?", KEY])
    lines = dict(line.split(": ", 1) for line in out.splitlines())
    assert lines["answer"] == lines["streamed"]
    ids = tokenizer("What is 9 + 2?")["input_ids"]
    table = logprobs_of(model, ids)
    total = sum(table[at, token].item() for at, token in enumerate(ids[1:]))
    figure, count = lines["log-prob of the prompt"].replace(" tokens", "").split(" over ")
    assert int(count) == len(ids) - 1
    assert abs(float(figure) - total) < 2e-3 * len(ids)


def test_the_reward_function_trains(folder, tmp_path):  # noqa: F811
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"{n}+1=", "answer": str(n + 1)}) + "\n" for n in range(4)))
    config = tmp_path / "run.yaml"
    config.write_text("rollout: {batch_size: 2, n_samples_per_prompt: 2, max_new_tokens: 8}\n"
                      "train: {max_steps: 1, threads: 1}\ncluster: {transport: loopback}\n"
                      "data: {input_key: prompt, prompt_max_len: 64}\n")
    ended([BUILD / "troupe", "train", "ppo", config, "--actor.model_name_or_path", folder,
           "--data.prompt_dataset", rows, "--reward.python", EXAMPLES / "length_reward.py",
           "--data.label_key", "answer", "--run.path", tmp_path / "run"])
    metrics = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    samples = [json.loads(line) for line in
               (tmp_path / "run" / "rollouts" / "step_000001.jsonl").read_text().splitlines()]
    assert len(samples) == 4
    right = [float(s["response"].strip().endswith(s["label"])) for s in samples]
    assert [s["reward"] for s in samples] == [
        r - 0.5 * min(len(s["response"]), 200) / 200 for r, s in zip(right, samples)]
    assert metrics["reward/extra/right"] == sum(right) / 4


def test_the_advantage_function_trains(folder, tmp_path):  # noqa: F811
    """What it gives is worked out on three samples; and a run with it has another gradient than one without."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"{n}+1=", "answer": str(n + 1)}) + "\n" for n in range(4)))
    config = tmp_path / "run.yaml"
    config.write_text("rollout: {batch_size: 2, n_samples_per_prompt: 4, max_new_tokens: 8}\n"
                      "train: {max_steps: 1, threads: 1}\ncluster: {transport: loopback}\n"
                      "data: {input_key: prompt, prompt_max_len: 64}\n"
                      "algo: {advantage: {estimator: dr_grpo}, objective: ppo}\n")
    scope = {}
    exec((EXAMPLES / "length_advantage.py").read_text(), scope)
    assert scope["advantage"]([1.0, 0.0, 5.0], [0, 0, 1], [2, 6, 4], [0, 1, 0]) == {
        "advantages": [[0.5] * 2, [-0.5 * 4 / 6] * 6, [0.0] * 4], "weights": [[1.0] * 2, [0.0] * 6, [1.0] * 4]}
    norms = []
    for name, flags in (("own", ["--algo.advantage_file", EXAMPLES / "length_advantage.py"]), ("plain", [])):
        ended([BUILD / "troupe", "train", "ppo", config, "--actor.model_name_or_path", folder,
               "--data.prompt_dataset", rows, "--reward.python", EXAMPLES / "length_reward.py",
               "--data.label_key", "answer", "--run.path", tmp_path / name, *flags])
        norms.append(json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[-1])["policy/grad_norm"])
    assert norms[0] != norms[1]


def test_the_quickstart_page_runs_as_it_stands(folder, tmp_path):  # noqa: F811
    """Its files are written, and its commands run in order; MODEL is the tiny model."""
    page = (EXAMPLES.parent / "quickstart.md").read_text()
    files = re.findall(r"^`(\w+\.\w+)`[^\n]*\n\n```\w+\n(.*?)```", page, re.M | re.S)
    assert [name for name, _ in files] == ["sft.jsonl", "tickets.jsonl", "reward.py", "grpo.yaml"]
    for name, text in files:
        (tmp_path / name).write_text(text)
    commands = re.findall(r"^    (troupe .*)$", page, re.M)
    assert len(commands) == 6
    for command in commands:
        words = [str(folder) if word == "MODEL" else word for word in shlex.split(command)]
        ran = subprocess.run([str(BUILD / words[0]), *words[1:]], cwd=tmp_path, text=True, timeout=PATIENCE_S,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}"
        if words[1] == "train":
            assert "use it with: troupe generate --model runs/" in ran.stdout
    assert "held-out reward, 4 problems" in subprocess.run(
        [str(BUILD / "troupe"), "train", "ppo", "grpo.yaml", "--run.path", "again"], cwd=tmp_path, text=True,
        timeout=PATIENCE_S, stdout=subprocess.PIPE).stdout
    assert (tmp_path / "report.html").exists()


def test_the_own_reward_of_the_readme_trains(folder, tmp_path):  # noqa: F811
    """Its file and its commands, as the front page has them; the model is the tiny one."""
    page = (EXAMPLES.parents[1] / "README.md").read_text()
    text = re.search(r"^```python\n# reward.py\n(.*?)```", page, re.M | re.S)[1]
    (tmp_path / "reward.py").write_text(text)
    block = re.search(r"^## Your own reward$(.*?)^## ", page, re.M | re.S)[1].replace("\\\n", " ")
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^    (troupe .*)$", block, re.M)]
    assert [words[1] for words in commands] == ["data", "train", "report"]
    for words in commands:
        words = [str(folder) if word.startswith("~") else word for word in words]
        ran = subprocess.run([str(BUILD / "troupe"), *words[1:]], cwd=tmp_path, text=True, timeout=PATIENCE_S,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert ran.returncode == 0, ran.stdout
    rows = [json.loads(line) for line in (tmp_path / "runs/mine/metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "reward/mean" in row] == list(range(1, 11))


def test_the_loop_over_files_keeps_the_best_of_each_prompt(folder, tmp_path):  # noqa: F811
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps({"prompt": f"{name}{n}=", "answer": "7"}) + "\n" for n in range(3)))
    words = [EXAMPLES / "best_of_n.sh", folder, "answer", tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    setting = dict(TROUPE=str(BUILD / "troupe"), N="3", MAX_NEW_TOKENS="8")
    assert ended(words, **setting).count("3 best answers") == 2
    for name in ("a", "b"):
        best = [json.loads(line) for line in (tmp_path / f"{name}.best.jsonl").read_text().splitlines()]
        answers = [json.loads(line) for line in (tmp_path / f"{name}.answers.jsonl").read_text().splitlines()]
        assert [row["prompt"] for row in best] == [f"{name}{n}=" for n in range(3)] and len(answers) == 9
    assert ended(words, **setting) == "", "a second time there is nothing to do"
