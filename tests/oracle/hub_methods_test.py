"""Training from Parquet of a hub by name, with rows that call tools: from `troupe init METHOD` to the last checkpoint.

TROUPE_ALL_METHODS=1: every method of METHODS, else the first.
"""

import io
import json
import os

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hub_test import Repository, files_of, home, hub, troupe  # noqa: F401 (fixtures)
from random_model import make_model

TEMPLATE = ("{% if tools %}tools:{{ tools | tojson }}\n{% endif %}{% for m in messages %}{{ m.role }}:"
            "{% if m.content is defined and m.content is not none %}{{ m.content }}{% endif %}"
            "{% if m.tool_calls is defined %}calls:{{ m.tool_calls | tojson }}{% endif %}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}assistant:{% endif %}")
NUMBER = {"type": "number"}
TOOLS = [{"type": "function", "function": {"name": name, "description": f"{name}s two numbers",
                                           "parameters": {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}}}} for name in ("add", "take")]


def call(a, b):
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "add", "arguments": {"a": a, "b": b}}}]}


def question(i):
    return [{"role": "user", "content": f"{i}+2?"}, call(i, 2), {"role": "tool", "content": str(i + 2)}]


def answer(text):
    return {"role": "assistant", "content": str(text)}


def row_of_answer(i):
    return {"messages": [*question(i), answer(i + 2)], "tools": TOOLS}


def row_of_pair(i):
    return {"prompt": question(i), "chosen": [answer(i + 2)], "rejected": [answer("fish")], "tools": TOOLS}


def row_of_prompt(i):
    return {"prompt": question(i), "answer": str(i + 2), "tools": TOOLS}


METHODS = {"sft": row_of_answer, "dpo": row_of_pair, "rm": row_of_pair, "grpo": row_of_prompt}
TAKEN = list(METHODS) if os.environ.get("TROUPE_ALL_METHODS") else ["sft"]


@pytest.fixture(scope="module")
def chatty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chatty") / "model"
    make_model(folder, template=TEMPLATE, max_position_embeddings=2048)
    return folder


@pytest.mark.parametrize("method", TAKEN)
def test_tool_rows_of_a_hub_from_init_to_the_end(hub, home, chatty, tmp_path, method):  # noqa: F811
    written = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([METHODS[method](i) for i in range(24)]), written, row_group_size=7)
    hub.models["org/chatty"] = Repository(files_of(chatty))
    hub.datasets["org/tools"] = Repository({"data/train-00000-of-00001.parquet": written.getvalue()})
    recipe, run = tmp_path / "recipe.yaml", tmp_path / "run"
    troupe(home, "init", method, "--data", "org/tools", "--model", "org/chatty", "--out", str(recipe), "--yes")
    trained = "ppo" if method == "grpo" else method
    # What the model reads of a row.
    seen = [json.loads(line) for line in troupe(home, "data", "preview", trained, str(recipe), "--json").splitlines()]
    text = seen[0].get("text") or seen[0]["prompt"]
    assert text.startswith('tools:[{"') and '"name": "take"' in text and 'assistant:calls:[{"' in text and '"arguments": {"a": 0, "b": 2}' in text
    small = ["--train.max_steps", "2", "--run.path", str(run), "--train.threads", "1", "--logger.tensorboard", "false"]
    if method == "grpo":
        small += ["--rollout.batch_size", "2", "--rollout.n_samples_per_prompt", "2", "--rollout.max_new_tokens", "8", "--train.batch_size", "0"]
    else:
        small += ["--train.batch_size", "4"]
    troupe(home, "train", trained, str(recipe), *small)
    assert (run / "ckpt/step_000002/model/model.safetensors").exists()
    assert [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()][-1] == 2
    # The same, streamed.
    troupe(home, "train", trained, str(recipe), *small, "--run.path", str(tmp_path / "streamed"), "--data.shuffle_buffer", "5")
    assert (tmp_path / "streamed/ckpt/step_000002/model/model.safetensors").exists()
