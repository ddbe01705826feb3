"""Bad inputs at the doors, on the real program: each ends with an exit code, a place that is named, the cause and a
remedy. A row is (exit code, words of the command, place, cause, remedy); FOLDER in words is the test's folder, where the
files of its door lie. The door of names has its twenty in hub_test.py (FAULTS, test_bad_words), and damaged tables are in
tables_test.py.
"""

import gzip
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("TROUPE_BUILD_DIR", pathlib.Path(__file__).parents[2] / "build"))
TROUPE = os.environ.get("TROUPE_BINARY", str(BUILD / "troupe"))
PATIENCE_S = 100


def troupe(*words, **changes):
    """Exit status, and what was said on both streams."""
    env = {**os.environ, "TROUPE_YES": "", **{name: str(value) for name, value in changes.items()}}
    done = subprocess.run([TROUPE, *map(str, words)], env=env, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of random weights that has a chat template without tools, and files of all doors."""
    folder = tmp_path_factory.mktemp("doors")
    subprocess.run([TROUPE, "model", "random", "--shape", "tiny", "--out", folder / "model"], check=True,
                   stdout=subprocess.DEVNULL)
    (folder / "model/chat_template.jinja").write_text(
        "{% for m in messages %}{{ m.role }}:{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}")
    for files in (TABLE_FILES, RECIPE_FILES, INSTALL_FILES):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def refused(folder, row, **changes):
    code, words, place, cause, remedy = row
    status, text = troupe(*(word.replace("FOLDER", str(folder)) for word in words), **changes)
    told = text.replace(str(folder) + "/", "").replace(str(folder), "FOLDER")
    assert status == code, (status, told)
    assert told.startswith("troupe: ") or "error: " in told, told
    assert "Traceback (most recent call last):\n  File \"<string>\"" not in told, told
    for part in (place, cause, remedy):
        assert part in told, (part, told)


# --- tables ---------------------------------------------------------------------------------------

ASKED = {"role": "user", "content": "2+3"}
TABLE_FILES = {
    "text.parquet": '{"input": "a", "output": "b"}\n',
    "text.arrow": "input,output\na,b\n",
    "list.feather": '[{"input": "a"}]',
    "plain.jsonl.gz": '{"input": "a"}\n',
    "cut.jsonl.gz": gzip.compress(b'{"input": "a"}\n' * 1000)[:40],
    "sheet.xlsx": b"PK\x03\x04" + bytes(40),
    "rows.jsonl.xz": b"\xfd7zXZ\x00" + bytes(20),
    "pointer.parquet": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "broken.jsonl": '{"input": "a", "output": "b"}\n{"input": "a", "output": \n',
    "number.jsonl": "7\n",
    "object.json": '{"input": "a"}',
    "twice.csv": "a,b,a\n1,2,3\n",
    "fields.csv": "a,b\n1,2,3\n",
    "empty.jsonl": "",
    "answers.jsonl": '{"prompt": "a", "completion": "b"}\n',
    "pairs.jsonl": '{"prompt": "a", "chosen": "b", "rejected": "c"}\n',
    "texts.jsonl": '{"text": "a b c"}\n',
    "messages.jsonl": json.dumps({"messages": [ASKED, {"role": "assistant", "content": "5"}]}) + "\n",
    "python.jsonl": json.dumps({"messages": str([ASKED])}) + "\n",
    "speaker.jsonl": '{"conversations": [{"from": "alien", "value": "a"}]}\n',
    "equal.jsonl": '{"prompt": "a", "chosen": "b", "rejected": "b"}\n',
    "label.jsonl": '{"prompt": "a", "completion": "b", "label": "perhaps"}\n',
    "notes/readme.txt": "no rows",
}


def rows_of(method, file, *more):
    return ["data", "check", method, "--data", f"FOLDER/{file}", "--model", "FOLDER/model", *more]


TABLES = [
    (4, ["data", "preview", "FOLDER/text.parquet"], "text.parquet", "its name says .parquet, and it is text",
     "hint: rename it by what it is: mv -n text.parquet text.jsonl"),
    (4, rows_of("sft", "text.arrow"), "text.arrow", "it is text, which begins with: input,output", "mv -n text.arrow text.csv"),
    (4, rows_of("sft", "list.feather"), "list.feather", "it is text", "mv -n list.feather list.json"),
    (4, rows_of("sft", "plain.jsonl.gz"), "plain.jsonl.gz", "its name says .gz, and it is text", "mv -n plain.jsonl.gz plain.jsonl"),
    (4, rows_of("sft", "cut.jsonl.gz"), "cut.jsonl.gz", "the gzip data end too early", "was the file cut?"),
    (4, rows_of("sft", "sheet.xlsx"), "sheet.xlsx", "is an Excel sheet", "pandas.read_excel"),
    (4, rows_of("sft", "rows.jsonl.xz"), "rows.jsonl.xz", "is compressed by xz", "xz -dc"),
    (4, rows_of("sft", "pointer.parquet"), "pointer.parquet", "is a Git LFS pointer", "git lfs pull"),
    (4, rows_of("sft", "notes"), "notes", "a folder without files of rows", "hint: name another"),
    (2, rows_of("sft", "nosuch.jsonl"), "nosuch.jsonl", "no such file", "hint: set --data.dataset"),
    (2, rows_of("sft", "nosuch-*.jsonl"), "nosuch-*.jsonl", "no file fits the pattern", "hint: "),
    (4, rows_of("sft", "broken.jsonl"), "broken.jsonl:2", "1 of 2 rows are refused", "hint: mend them or leave them out"),
    (4, rows_of("sft", "number.jsonl"), "number.jsonl:1", "expected a JSON object", "hint: "),
    (4, rows_of("sft", "object.json"), "object.json", "expected a list of objects", "must be called .jsonl"),
    (4, rows_of("sft", "twice.csv"), "twice.csv:1", "two columns 'a'", "hint: "),
    (4, rows_of("sft", "fields.csv"), "fields.csv:2", "3 fields, the header has 2", "hint: "),
    (4, rows_of("dpo", "answers.jsonl"), "answers.jsonl:1", "no column 'chosen'", "`troupe train` reads with sft, distill"),
    (4, rows_of("sft", "pairs.jsonl"), "pairs.jsonl:1", "no column 'output'", "`troupe train` reads with rm, dpo"),
    (4, rows_of("kto", "answers.jsonl"), "answers.jsonl:1", "no column 'label'", "`troupe train` reads with sft, distill"),
    (4, rows_of("rm", "texts.jsonl"), "texts.jsonl:1", "no column 'chosen'", "`troupe train` reads with pretrain"),
    (4, rows_of("sft", "messages.jsonl", "--data.input_key", "qeustion"), "messages.jsonl:1", "no column 'qeustion'",
     "hint: set --data.input_key to one of: messages"),
    (4, rows_of("sft", "python.jsonl"), "python.jsonl:1", "column 'messages' is a text that begins as a list of messages", "ast.literal_eval"),
    (4, rows_of("sft", "speaker.jsonl"), "speaker.jsonl:1", "is from 'alien'", "read are human or user"),
    (4, rows_of("dpo", "equal.jsonl"), "equal.jsonl:1", "are equal: there is nothing to prefer", "leave the row out"),
    (4, rows_of("kto", "label.jsonl"), "label.jsonl:1", "column 'label' must be true or false", "hint: "),
]


@pytest.mark.parametrize("row", TABLES, ids=lambda row: row[2] + " " + row[1][1])
def test_tables(folder, row):
    refused(folder, row)




def test_messages_as_json_text_are_messages(folder, tmp_path):
    """As CSV files have them: the row is that of the same list."""
    chat = [ASKED, {"role": "assistant", "content": "5"}]
    (tmp_path / "list.jsonl").write_text(json.dumps({"messages": chat}) + "\n")
    (tmp_path / "text.csv").write_text('messages\n"' + json.dumps(chat).replace('"', '""') + '"\n')
    seen = []
    for name in ("list.jsonl", "text.csv"):
        status, out = troupe("data", "preview", "sft", "--json", "--data", tmp_path / name, "--model", folder / "model")
        assert status == 0, out
        seen.append({**json.loads(out), "where": ""})
    assert seen[0] == seen[1] and seen[0]["text"].startswith("user:2+3<|end|>assistant:5")


def test_a_file_is_read_as_what_it_is_whatever_its_name(tmp_path):
    (tmp_path / "packed.jsonl").write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert troupe("data", "preview", tmp_path / "packed.jsonl", "--json") == (0, '{"a":1}\n')


def test_two_dialects_of_preview_are_one(folder):
    keys = ["--data.dataset", folder / "answers.jsonl", "--actor.model_name_or_path", folder / "model"]
    flags = ["--data", folder / "answers.jsonl", "--model", folder / "model"]
    for action in ("preview", "stats", "check"):
        told = [troupe("data", action, "sft", "--json", *words) for words in (keys, flags)]
        assert told[0] == told[1] and told[0][0] == 0, told
    status, out = troupe("data", "preview", "grpo", "--json", *flags)
    assert status == 0 and '"prompt":"a"' in out, out
    status, out = troupe("data", "preview", "--data", folder / "answers.jsonl", "--json")
    assert (status, json.loads(out)) == (0, {"prompt": "a", "completion": "b"})


TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
UNSEEN = "column 'tools' has add, and the chat template ("


def test_tools_that_a_template_leaves_out_are_told_at_the_doors(folder, tmp_path):
    rows = tmp_path / "tools.jsonl"
    chat = [ASKED, {"role": "assistant", "content": "5"}]
    rows.write_text((json.dumps({"messages": chat, "tools": TOOLS}) + "\n") * 4)
    keys = ["--data.dataset", rows, "--actor.model_name_or_path", folder / "model"]
    recipe = tmp_path / "r.yaml"
    recipe.write_text("method: sft\ntrain: {batch_size: 2, max_steps: 1, threads: 1}\ndata: {max_len: 64}\n")
    status, checked = troupe("data", "check", "sft", *keys)
    assert status == 0 and checked.count(f"warning: {rows}:1: {UNSEEN}{folder}/model/chat_template.jinja) shows nothing") == 1, checked
    status, valid = troupe("config", "validate", recipe, *keys)
    assert status == 0 and valid.count(f"data.dataset: warning: {rows}:1: {UNSEEN}") == 1, valid
    status, ran = troupe("train", "sft", recipe, *keys, "--run.path", tmp_path / "run")
    assert status == 0 and ran.count(UNSEEN) == 1, ran
    # What to do with a model that has learned dialogues.
    assert f"use it with: troupe generate --model {tmp_path}/run --chat --prompt 'TEXT'" in ran
    status, prompts = troupe("data", "check", "ppo", "--data", rows, "--model", folder / "model")
    assert status == 0 and prompts.count(UNSEEN) == 1, prompts
    (tmp_path / "seeing").mkdir()
    for file in (folder / "model").iterdir():
        os.link(file, tmp_path / "seeing" / file.name)
    (tmp_path / "seeing/chat_template.jinja").unlink()
    (tmp_path / "seeing/chat_template.jinja").write_text("{{ tools }}{% for m in messages %}{{ m.role }}:{{ m.content }}<|end|>{% endfor %}")
    status, seen = troupe("data", "check", "sft", "--data", rows, "--model", tmp_path / "seeing")
    assert status == 0 and "'tools'" not in seen, seen


# --- recipes --------------------------------------------------------------------------------------

RECIPE_FILES = {
    "prompts.jsonl": '{"prompt": "2+3=", "answer": "5"}\n' * 8,
    "ppo.yaml": "method: ppo\nrollout: {batch_size: 2, n_samples_per_prompt: 4, max_new_tokens: 6}\n"
                "data: {prompt_max_len: 64, prompt_dataset: FILE}\ntrain: {max_steps: 1, threads: 1}\n",
    "syntax.py": "def reward_func(queries, prompts, labels)\n    return []\n",
    "nothing.py": "SCORE = 1\n",
    "two.py": "def one(completions):\n    return []\ndef other(completions):\n    return []\n",
    "signature.py": "def reward_func(wrong):\n    return []\n",
    "package.py": "import no_such_package\ndef reward_func(completions, **kwargs):\n    return []\n",
    "raises.py": "raise RuntimeError('not today')\n",
    "ends.py": "import sys\nsys.exit(3)\n",
    "key.yaml": "method: sft\nactor:\n  adam:\n    lrr: 1e-6\n",
    "range.yaml": "method: sft\nactor: {adam: {lr: -1}}\n",
    "indent.yaml": "method: sft\n  train: x\n",
    "method.yaml": "method: stf\n",
    "two.sh": "trl sft --learning_rate 1e-5\ntrl dpo --learning_rate 1e-5\n",
    "none.sh": "echo hello\n",
    "list.yaml": "- a\n- b\n",
    "sft.yaml": "learning_rate: 1e-5\n",
    "broken_trl.py": "config = SFTConfig(\n",
    "flags_trl.py": "from trl import TrlParser\nparser = TrlParser((ScriptArguments, SFTConfig))\n",
    "two_trl.py": "a = SFTConfig(beta=1)\nb = DPOConfig(beta=1)\n",
    "there.yaml": "method: sft\n",
}


def validated(reward, *more):
    return ["config", "validate", "FOLDER/ppo.yaml", "--data.prompt_dataset", "FOLDER/prompts.jsonl", "--actor.model_name_or_path",
            "FOLDER/model", "--reward.python", f"FOLDER/{reward}", *more]


RECIPES = [
    (2, validated("syntax.py"), "reward.python", "SyntaxError", "hint: "),
    (2, validated("nothing.py"), "reward.python", "define `reward_func` (found 0 public functions", "hint: "),
    (2, validated("two.py"), "reward.python", "found 2 public functions", "hint: "),
    (2, validated("signature.py"), "reward.python", "reward_func is called with", "hint: "),
    (2, validated("package.py"), "reward.python", "No module named 'no_such_package'", "hint: install it there, or name another Python"),
    (2, validated("raises.py"), "reward.python", "RuntimeError: not today", "hint: "),
    (2, validated("ends.py"), "reward.python", "", "hint: "),
    (2, validated("nosuch.py"), "reward.python", "there is no file nosuch.py", "hint: "),
    (2, validated("raises.py", "--reward.interpreter", "/none/python3"), "reward.python", "there is no Python '/none/python3'",
     "hint: name one with --reward.interpreter"),
    (2, ["config", "validate", "FOLDER/key.yaml"], "key.yaml:4", "unknown key 'actor.adam.lrr'", "did you mean 'actor.adam.lr'?"),
    (2, ["config", "validate", "FOLDER/range.yaml"], "range.yaml:2", "actor.adam.lr = -1", "expected "),
    (2, ["config", "validate", "FOLDER/indent.yaml"], "indent.yaml", "", "hint: "),
    (2, ["config", "validate", "FOLDER/method.yaml"], "method.yaml:1", "stf", "sft"),
    (2, ["config", "validate", "FOLDER/nosuch.yaml"], "nosuch.yaml", "", "hint: "),
    (2, ["config", "from-trl", "FOLDER/two.sh"], "two.sh", "has several commands of TRL, in lines 1 and 2", "keep one of them"),
    (2, ["config", "from-trl", "FOLDER/none.sh"], "none.sh", "no command of TRL in it", "a file of flags alone needs --method"),
    (2, ["config", "from-trl", "FOLDER/list.yaml"], "list.yaml", "expected `key: value` pairs at the top", ""),
    (2, ["config", "from-trl", "FOLDER/sft.yaml"], "sft.yaml", "does not say what is trained", "hint: give --method"),
    (2, ["config", "from-trl", "FOLDER/broken_trl.py"], "broken_trl.py:1", "is no Python: ", "hint: "),
    (2, ["config", "from-trl", "FOLDER/flags_trl.py"], "flags_trl.py", "makes no settings of TRL by a call", "shell script that gives them"),
    (2, ["config", "from-trl", "FOLDER/two_trl.py"], "two_trl.py", "SFTConfig in line 1 and DPOConfig in line 2", "keep one of them"),
    (2, ["config", "from-trl", "FOLDER/nosuch.py"], "nosuch.py", "", "hint: "),
    (2, ["config", "from-verl", "FOLDER/two.sh"], "two.sh", "no command of verl in it", "hint: "),
    (2, ["init", "sft", "--out", "FOLDER/there.yaml"], "there.yaml", "is there already", "hint: give another name"),
    (2, ["init", "sft", "--data", "FOLDER/nosuch.jsonl"], "--data", "no such file", "hint: "),
    (4, ["init", "dpo", "--data", "FOLDER/answers.jsonl"], "answers.jsonl:1", "no column of the better answer", "reads with sft, distill"),
]


@pytest.mark.parametrize("row", RECIPES, ids=lambda row: row[2] + " " + row[1][1])
def test_recipes(folder, row):
    refused(folder, row)


def test_validate_says_that_a_reward_loads(folder, tmp_path):
    reward = tmp_path / "good.py"
    reward.write_text("def reward_func(completions, answer, **kwargs):\n    open(__file__ + '.called', 'w')\n    return [0.0]\n")
    words = [word.replace("FOLDER", str(folder)) for word in validated("x")[:-1]]
    status, out = troupe(*words, reward)
    assert status == 0 and f"reward.python: {reward} loads; its function was not called" in out, out
    assert not (tmp_path / "good.py.called").exists()


TRL_SCRIPT = """
from datasets import load_dataset
from peft import LoraConfig
from trl import DPOConfig, DPOTrainer
open("touched", "w")
MODEL = "org/base"
dataset = load_dataset("org/pairs", split="train_prefs")
config = DPOConfig(
    output_dir="out", beta=0.2, learning_rate=5e-7, per_device_train_batch_size=2, gradient_accumulation_steps=4,
    loss_type="sigmoid", bf16=True, report_to=None, seed=pick_seed(), **more)
trainer = DPOTrainer(model=MODEL, args=config, train_dataset=dataset, peft_config=LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj"]))
"""


def test_a_python_script_of_trl_is_read_and_not_run(tmp_path):
    (tmp_path / "train_dpo.py").write_text(TRL_SCRIPT)
    (tmp_path / "prepare.py").write_text("print('rows')\n")
    (tmp_path / "run.sh").write_text("python prepare.py\naccelerate launch --num_processes 4 train_dpo.py\n")
    for file, batch in (("train_dpo.py", 8), ("run.sh", 32)):
        done = subprocess.run([TROUPE, "config", "from-trl", file], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        yaml = done.stdout
        for line in ("method: dpo", "model_name_or_path: \"org/base\"", "lr: 5e-07", "rank: 8", "dataset: \"org/pairs::train_prefs\"",
                     f"batch_size: {batch}", "beta: 0.2", "path: \"out\""):  # fmt: skip
            assert line in yaml, (line, yaml)
        assert "seed = pick_seed() (train_dpo.py:10): what pick_seed() is, only Python" in yaml.replace("\n# ", " "), yaml
    assert not (tmp_path / "touched").exists()


def test_init_says_what_comes_next(folder, tmp_path):
    recipe = tmp_path / "my sft.yaml"
    status, out = troupe("init", "sft", "--data", folder / "answers.jsonl", "--model", folder / "model", "--out", recipe)
    assert status == 0, out
    assert out == f"{recipe} is written; check it, then train:\n  troupe config validate '{recipe}'\n  troupe train sft '{recipe}'\n"


def test_plan_judges_by_this_machine(folder):
    words = ["plan", "--method", "sft", "--data.dataset", "x.jsonl", "--actor.model_name_or_path", folder / "model"]
    status, out = troupe(*words)
    assert status == 0 and "note: judged by the memory of this machine, " in out and "\nfits: the fullest is " in out, out
    status, out = troupe(*words, "--host-gb", "64")
    assert status == 0 and "note: judged" not in out and "\nfits: " in out, out
    status, out = troupe(*words, "--host-gb", "0.000001")
    assert status == 3 and "does not fit" in out, out


# --- the command line -----------------------------------------------------------------------------

COMMAND_LINE = [
    (2, ["frobnicate"], "'frobnicate'", "", "hint: "),
    (2, ["train"] + ["dop"], "`train dop`", "", "did you mean `train dpo`?"),
    (2, ["train", "grpo"], "`train grpo`", "", "`train ppo` with --algo.advantage.estimator group_norm"),
    (2, ["train", "sft", "--train.batch_sise", "2"], "the command line", "unknown key 'train.batch_sise'", "did you mean 'train.batch_size'?"),
    (2, ["train", "sft", "--train.batch_size", "many"], "train.batch_size = many", "", "expected a whole number, 0 to 16777216"),
    (2, ["train", "sft", "--train.batch_size"], "--train.batch_size", "", "needs a value (int, 0 to 16777216)"),
    (2, ["train", "sft", "--reward.rule", "exact"], "reward.rule", "is not read by `train sft`", "hint: take it out"),
    (2, ["train", "ppo", "--algo.objective", "ppoo"], "algo.objective = ppoo", "", "ppo"),
    (2, ["train", "sft", "nosuch.yaml"], "nosuch.yaml", "no such configuration file", "hint: give the path of one"),
    (2, ["train", "sft", "--help", "rollout"], "train sft", "has no group 'rollout' of keys", "hint: --help alone lists them"),
    (2, ["train", "sft", "--num_generations", "8"], "'rollout.n_samples_per_prompt'", "is not read by `train sft`", "hint: take it out"),
    (2, ["config", "shwo"], "`config shwo`", "there is no", "hint: use show, validate"),
    (2, ["data", "prevue"], "`data prevue`", "there is no", "hint: use preview"),
    (2, ["data", "preview"], "", "neither files nor a method are named", "hint: name files of rows, or a method"),
    (2, ["init", "gpro"], "'gpro'", "there is no method", "did you mean `troupe init grpo`?"),
    (2, ["generate", "--modle", "x"], "'--modle'", "unknown argument", "did you mean --model?"),
    (2, ["generate", "--model", "FOLDER/model"], "troupe generate", "give one of --prompt", ""),
    (2, ["generate", "--model", "FOLDER/model", "--prompt", "a", "--n", "0"], "--n = 0", "expected 1 to", ""),
    (2, ["generate", "--model", "FOLDER/nosuch", "--prompt", "a"], "nosuch", "no model folder", "hint: "),
    (2, ["eval", "--model", "FOLDER/model"], "troupe eval", "", "--"),
    (2, ["score", "--data", "FOLDER/answers.jsonl"], "troupe score", "give --data and --out", ""),
    (2, ["completion", "fish"], "'fish'", "there is no completion", "hint: choose bash or zsh"),
    (2, ["bench", "nothing"], "'nothing'", "", "hint: "),
    (2, ["doctor", "--modle", "x"], "'--modle'", "unknown flag", "hint: see troupe doctor --help"),
    (2, ["plan", "--method", "sft", "--data.dataset", "x", "--actor.model_name_or_path", "FOLDER/model", "--cluster", "8yH100"],
     "--cluster", "8yH100", "hint: "),
]


@pytest.mark.parametrize("row", COMMAND_LINE, ids=lambda row: " ".join(row[1]))
def test_command_line(folder, row):
    refused(folder, row)


# --- installing -----------------------------------------------------------------------------------

INSTALL_FILES = {
    "torch_old/lib/libtorch_cpu.so": "",
    "torch_old/version.py": "__version__ = '2.4.0'\n",
    "file": "x",
    "real.parquet": b"PAR1" + bytes(8) + b"PAR1",
}
WORDS = ["train", "sft", "--data.dataset", "FOLDER/answers.jsonl", "--actor.model_name_or_path", "FOLDER/model", "--data.max_len", "64",
         "--train.batch_size", "1", "--run.path", "FOLDER/run"]  # fmt: skip
INSTALL = [
    ((3, WORDS, "TROUPE_TORCH", "/none", "hint: "), {"TROUPE_TORCH": "/none"}),
    ((3, WORDS, "TROUPE_TORCH", "file", "hint: "), {"TROUPE_TORCH": "FOLDER/file"}),
    ((3, WORDS, "torch_old", "2.4", "2.11"), {"TROUPE_TORCH": "FOLDER/torch_old"}),
    ((2, ["doctor", "--install-torch"], "TROUPE_TORCH is /none", "no other LibTorch counts", "hint: unset TROUPE_TORCH"),
     {"TROUPE_TORCH": "/none"}),
    ((2, ["doctor", "--install-torch", "--no"], "'--no'", "unknown flag", "hint: there is --yes"), {}),
    ((2, ["doctor", "--gpus", "--jsno"], "'--jsno'", "unknown flag", "hint: there is --json"), {}),
    ((2, ["doctor", "--run-path"], "--run-path", "needs a value", ""), {}),
    ((2, ["doctor", "--model", "FOLDER/nosuch"], "nosuch", "no model folder", "hint: "), {}),
    ((2, ["doctor"], "TROUPE_ISA=sse", "is not a level of this processor", "it has:"), {"TROUPE_ISA": "sse"}),
    ((3, ["doctor", "--gpus", "--json"], "no GPU", "cannot be loaded", "TROUPE_CUDA_LIBRARY names another"), {"TROUPE_CUDA_LIBRARY": "/none/libtroupe_cuda.so"}),
    ((3, ["generate", "--model", "FOLDER/model", "--prompt", "a", "--device", "cuda"], "--device cuda", "file too short",
      "TROUPE_CUDA_LIBRARY names another"),
     {"TROUPE_CUDA_LIBRARY": "FOLDER/file"}),
    ((2, ["generate", "--model", "FOLDER/model", "--prompt", "a", "--device", "gpu"], "gpu", "", "cuda"), {}),
    ((2, ["data", "preview", "FOLDER/real.parquet"], "libtroupe_tables.so", "", "TROUPE_TABLES_LIBRARY"),
     {"TROUPE_TABLES_LIBRARY": "/none/libtroupe_tables.so"}),
    ((2, ["data", "preview", "FOLDER/real.parquet"], "libtroupe_tables.so", "", "TROUPE_TABLES_LIBRARY"),
     {"TROUPE_TABLES_LIBRARY": "FOLDER/file"}),
    ((3, ["get", "org/model", "--yes"], "the hub's client", "needs a python3", "hint: put one into PATH"), {"PATH": "/none", "HF_HOME": "FOLDER/hub"}),
    ((3, ["config", "from-trl", "FOLDER/two_trl.py"], "two_trl.py", "needs a python3", "hint: put one into PATH"), {"PATH": "/none"}),
    ((2, validated("two.py"), "reward.python", "there is no Python 'python3'", "hint: name one with --reward.interpreter"),
     {"PATH": "/none"}),
]


@pytest.mark.parametrize("row, changes", INSTALL)
def test_install(folder, row, changes):
    refused(folder, row, **{name: str(value).replace("FOLDER", str(folder)) for name, value in changes.items()})


@pytest.fixture
def installed(tmp_path):
    """The program alone in a folder `bin`, as without a build folder."""
    program = tmp_path / "bin/troupe"
    program.parent.mkdir()
    program.write_bytes(pathlib.Path(TROUPE).read_bytes())
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("beside, words, code, told", [
    ({}, ["doctor", "--gpus"], 0, ["neither libtroupe_cuda.so nor libtroupe_cuda12.so is next to the program", "packages made with --cuda have them (docs/install.md"]),
    ({}, ["doctor"], 0, ["training needs libtroupe_learn.so", "copy it there from where the program was built"]),
    ({"x.parquet": b"PAR1" + bytes(8) + b"PAR1"}, ["data", "preview", "x.parquet"], 2,
     ["libtroupe_tables.so is not next to the program", "every package has it: install Troupe again"]),
    ({"x.jsonl.gz": gzip.compress(b"{}")}, ["data", "preview", "x.jsonl.gz"], 2,
     ["libtroupe_tables.so is not next to the program", "every package has it: install Troupe again"]),
    ({}, ["bench", "gemm"], 2, ["there is no troupe-bench in ", "the tarball has it, the wheel does not (docs/install.md)"]),
    ({"bin/libtroupe_learn.so": b"of another build"}, ["doctor"], 0,
     ["libtroupe_learn.so is of another build than this program", "copy both from the same build"]),
    ({"lib/libtroupe_tables.so": b"x", "x.parquet": b"PAR1" + bytes(8) + b"PAR1"}, ["data", "preview", "x.parquet"], 2,
     ["libtroupe_tables.so cannot be loaded", "install Troupe again"]),
])  # fmt: skip
def test_what_an_installed_program_advises(installed, tmp_path, beside, words, code, told):
    """No command of a checkout, which who installed a package does not have."""
    for name, content in beside.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_LIBRARY")}
    done = subprocess.run([installed, *words], cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=PATIENCE_S)
    said = done.stdout + done.stderr
    assert done.returncode == code and "./dev" not in said, said
    for part in told:
        assert part in said, said
