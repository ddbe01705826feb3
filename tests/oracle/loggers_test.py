"""Loggers against the real packages with their offline back ends: what wandb, mlflow and trackio hold
after a run, read back by their own code in their own environment, is what metrics.jsonl holds, once.
Here trackio, the quickest to start; all three, and faults of side processes: loggers_full_test.py."""

import json
import math
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

TROUPE = Path(os.environ["TROUPE_BUILD_DIR"]) / "troupe"
SOURCE = Path(os.environ["TROUPE_SOURCE_DIR"])
LOGGERS = SOURCE / ".venv" / "loggers" / "bin" / "python"
SERVICES = ("wandb", "mlflow", "trackio")
PATIENCE_S = 240

pytestmark = pytest.mark.skipif(not LOGGERS.exists(), reason="no environment of loggers; ./dev test makes it")

# Prints {run: {step: {name: value}}} with repr'd values, and how often each came.
READ_BACK = r"""
import glob, json, os, sys
run, service, project = sys.argv[1:4]
found = []
if service == "wandb":
    sys.path.insert(0, os.path.dirname(os.environ["SIDE"]))
    import side_process
    for path in sorted(glob.glob(run + "/loggers/wandb/offline-run-*/*.wandb")):
        for row in side_process.offline_history(path):
            found += [(row["_step"], name, value) for name, value in row.items() if name[0] != "_"]
elif service == "mlflow":
    from mlflow import MlflowClient
    client = MlflowClient(tracking_uri="sqlite:///" + run + "/mlflow.db")
    (one,) = client.search_runs([client.get_experiment_by_name(project).experiment_id])
    for name in one.data.metrics:
        found += [(m.step, name.replace("_at_", "@"), m.value) for m in client.get_metric_history(one.info.run_id, name)]
    print(json.dumps({"status": one.info.status, "name": one.info.run_name, "seed": one.data.params["train.seed"]}))
else:
    from trackio.sqlite_storage import SQLiteStorage
    (one,) = SQLiteStorage.get_runs(project)
    for row in SQLiteStorage.get_logs(project, one):
        found += [(row["step"], name, value) for name, value in row.items() if name not in ("step", "timestamp")]
print(json.dumps([(step, name, repr(float(value))) for step, name, value in found]))
"""


def environment(folder, **more):
    own = {name: value for name, value in os.environ.items() if not name.startswith(("WANDB_", "MLFLOW_", "TRACKIO_"))}
    return {**own, "WANDB_MODE": "offline", "TRACKIO_DIR": str(folder / "trackio"), **more}


def read_back(run, service, project="troupe"):
    out = subprocess.run([LOGGERS, "-c", READ_BACK, run, service, project], check=True, text=True, capture_output=True,
                         env=environment(run.parent, SIDE=str(SOURCE / "apps/loggers/side_process.py"))).stdout
    return [json.loads(line) for line in out.splitlines() if line[:1] in "[{"]


def written(run):
    """What metrics.jsonl holds, in the form of read_back."""
    found = []
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        for name, value in row.items():
            if name not in ("step", "time"):
                found.append([row["step"], name, repr(float(value))])
    return found


def holds_all_once(run, service):
    assert sorted(read_back(run, service)[-1]) == sorted(written(run))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loggers")
    subprocess.run([TROUPE, "model", "random", "--shape", "tiny", "--out", folder / "model"], check=True,
                   stdout=subprocess.DEVNULL)
    (folder / "rows.jsonl").write_text("".join(json.dumps({"input": f"{i}+1=", "output": f"{i + 1}"}) + "\n" for i in range(8)))
    return folder


def words(tiny, run, steps, *more):
    return [str(word) for word in (
        TROUPE, "train", "sft", "--actor.model_name_or_path", tiny / "model", "--data.dataset", tiny / "rows.jsonl",
        "--data.max_len", "64", "--train.batch_size", "4", "--train.max_epochs", "1000", "--train.max_steps", steps,
        "--train.threads", "1", "--train.seed", "5", "--logger.tensorboard", "false", "--actor.lr_warmup_ratio", "0", "--actor.lr_scheduler", "constant", "--run.path", run, *more)]  # fmt: skip


def ended(command, env):
    done = subprocess.run(command, text=True, timeout=PATIENCE_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
    return done.returncode, done.stdout


def started(command, env, log):
    return subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT, env=env)


def wait_for(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def lines(path):
    return path.read_text().count("\n") if path.exists() else 0


def side_process_of(pid):
    """The process that has the child's settings in its command line."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            for child in (task / "children").read_text().split():
                if b'"logger":' in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
        except OSError:
            pass  # a thread or a process that has ended meanwhile
    return 0


def caught_up(run, services, env):
    """Sends what is left: a loaded machine may end a run before its loggers."""
    status, text = ended([str(TROUPE), "log", str(run), "--to", ",".join(services)], env)
    assert status == 0, text


def holds_after_it_went_on(tiny, tmp_path, services):
    run, env = tmp_path / "run", environment(tmp_path)
    on = ["--eval.dataset", str(tiny / "rows.jsonl"), "--eval.steps", "2"]
    on += [word for service in services for word in (f"--logger.{service}", "true")]
    for steps in (4, 7):
        status, text = ended(words(tiny, run, steps, *on), env)
        assert status == 0, text
    assert max(step for step, _, _ in written(run)) == 7
    caught_up(run, services, env)
    for service in services:
        holds_all_once(run, service)
    return run


def test_trackio_holds_what_the_run_wrote_also_after_it_went_on(tiny, tmp_path):
    holds_after_it_went_on(tiny, tmp_path, ["trackio"])


def test_catching_up_after_the_fact(tiny, tmp_path):
    run, env = tmp_path / "run", environment(tmp_path)
    assert ended(words(tiny, run, 3), env)[0] == 0
    with (run / "metrics.jsonl").open("a") as file:
        file.write('nonsense\n{"step": 9, "time": 1, "x": "nan", "y": "-inf"}\n{"step": 10, "z"')
    status, text = ended([str(TROUPE), "log", str(run), "--to", "trackio", "--project", "p2", "--run-name", "named"], env)
    assert status == 0 and "1 lines of metrics.jsonl could not be read" in text, text
    held = read_back(run, "trackio", "p2")[-1]
    assert [9, "x", "nan"] in held and [9, "y", "-inf"] in held


def test_a_killed_side_process_is_started_again(tiny, tmp_path):
    run, env = tmp_path / "run", environment(tmp_path)
    process = started(words(tiny, run, 600, "--logger.trackio", "true"), env, tmp_path / "log.txt")
    wait_for(lambda: lines(run / "metrics.jsonl") >= 20 and side_process_of(process.pid) and (tmp_path / "trackio").exists())
    os.kill(side_process_of(process.pid), signal.SIGKILL)
    assert process.wait(PATIENCE_S) == 0
    text = (tmp_path / "log.txt").read_text()
    assert text.count("was ended by signal 9 (Killed); the run goes on") == 1, text
    assert "lost once" in text or "missing" in text, text
    caught_up(run, ["trackio"], env)
    holds_all_once(run, "trackio")


@pytest.mark.parametrize("service, python, said", [
    ("wandb", "/usr/bin/python3", "no Python package wandb"),
    ("mlflow", "/nowhere/python", "cannot run /nowhere/python"),
])  # fmt: skip
def test_a_missing_package_is_said_once(tiny, tmp_path, service, python, said):
    run, env = tmp_path / "run", environment(tmp_path, TROUPE_LOGGER_PYTHON=python)
    status, text = ended(words(tiny, run, 3, f"--logger.{service}", "true"), env)
    assert status == 0, text
    assert text.count(said) == 1 and "0 rows sent" in text, text
    assert lines(run / "metrics.jsonl") > 0
    status, text = ended([str(TROUPE), "log", str(run), "--to", service], env)
    assert status == 5 and said in text, text


def test_bad_words(tmp_path):
    (tmp_path / "metrics.jsonl").write_text("")
    for command, said in (
        (["log"], "give the folder of a run"),
        (["log", tmp_path / "nowhere", "--to", "wandb"], "holds no metrics.jsonl"),
        (["log", tmp_path, "--to", "wandbb"], "--to 'wandbb' is unknown"),
        (["log", tmp_path], "is unknown"),
        (["log", tmp_path, tmp_path, "--to", "wandb"], "is a second run"),
    ):
        status, text = ended([str(word) for word in (TROUPE, *command)], environment(tmp_path))
        assert status == 2 and said in text, text


def test_the_environment_is_named_as_dev_names_it():
    assert (SOURCE / ".venv" / "loggers").resolve().name.startswith("loggers-")
    parts = [(SOURCE / "apps" / name).read_text() for name in ("side/side_common.py", "loggers/side_process.py")]
    side = "\n".join(parts).replace(
        "@TROUPE_LOGGER_REQUIREMENTS@", (SOURCE / "runtime/cmake/requirements/loggers.txt").read_text())
    scope = {"__name__": "side"}
    exec(side, scope)
    named = subprocess.run(["python3", "-c", "import sys; print(sys.version_info[:2])"], text=True, capture_output=True).stdout
    if named == "(3, 11)\n":
        assert Path(scope["environment_folder"]()).name == (SOURCE / ".venv" / "loggers").resolve().name
    assert math.isnan(scope["numbers"]({"step": 1, "x": "nan", "y": True, "z": "text"})["x"])
