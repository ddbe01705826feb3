# Sends the rows of a run's metrics.jsonl to Weights & Biases, MLflow or trackio. Runs alongside the run,
# or after it. The program starts this text with `python3 -c TEXT SETTINGS`; it makes the environment
# of the pinned packages if it is missing and goes on in it.
#
# What was sent is asked of the service itself, when this begins: a row goes there once, however often
# this process, or the run, was killed or went back to a checkpoint. Standard output has one JSON
# object a line: {"alive": seconds since the last step of the work}, {"note": text}, {"sent": rows}.
# Standard input: "end" when the run has ended; its end means that the run is gone.
import fcntl
import importlib
import json
import math
import os
import re
import select
import sys
import threading
import time

ENVIRONMENT = {"name": "loggers", "variable": "TROUPE_LOGGER", "packages": "loggers", "gib": 1,
               "requirements": r"""@TROUPE_LOGGER_REQUIREMENTS@"""}
POLL_S = 0.5
PACKAGES = {"wandb": "wandb", "mlflow": "mlflow-skinny", "trackio": "trackio"}


# --- the rows -------------------------------------------------------------------------------------


class Rows:
    """New whole lines of metrics.jsonl; all of them again once the file was cut back."""

    def __init__(self, path):
        self.path, self.offset, self.last, self.bad = path, 0, b"", 0

    def new(self):
        try:
            with open(self.path, "rb") as file:
                if self.offset:
                    file.seek(self.offset - len(self.last))
                    if file.read(len(self.last)) != self.last:
                        self.offset = 0
                file.seek(self.offset)
                data = file.read(16 << 20)
        except FileNotFoundError:
            return []
        end = data.rfind(b"\n") + 1
        if end == 0:
            return []
        lines = data[:end].splitlines(keepends=True)
        self.offset += end
        self.last = lines[-1]
        return [row for row in map(self.row, lines) if row]

    def row(self, line):
        try:
            row = json.loads(line)
            if isinstance(row.get("step"), int):
                return row
        except (ValueError, AttributeError):
            pass
        self.bad += 1
        return None


def numbers(row):
    """The metrics of a row; nan, inf and -inf stand there as texts."""
    found = {}
    for name, value in row.items():
        if name in ("step", "time") or isinstance(value, bool):
            continue
        if value in ("nan", "inf", "-inf"):
            value = float(value)
        if isinstance(value, (int, float)):
            found[name] = float(value)
    return found


def flat(tree, prefix=""):
    found = {}
    for name, value in (tree or {}).items():
        if isinstance(value, dict):
            found.update(flat(value, prefix + str(name) + "."))
        else:
            found[prefix + str(name)] = value
    return found


def configuration(run):
    """The run's keys, without those that are empty."""
    import yaml
    try:
        with open(os.path.join(run, "resolved_config.yaml")) as file:
            keys = flat(yaml.safe_load(file))
    except (OSError, yaml.YAMLError):
        return {}
    return {name: value for name, value in keys.items() if value not in ("", [], None)}


# --- the services ---------------------------------------------------------------------------------
# Each has known(): the names that it holds at each step; send(step, seconds, metrics), and end(done,
# sent), which fails where what was sent did not arrive.


class Wandb:
    def __init__(self, to):
        self.wandb = importlib.import_module("wandb")
        folder = os.path.join(to["run"], "loggers")
        self.folder, self.id = folder, to["id"]
        self.run = self.wandb.init(
            project=to["project"], entity=to["org"] or None, group=to["group"] or None,
            name=to["name"], id=to["id"], resume="allow", dir=folder, config=to["config"],
            settings=self.wandb.Settings(console="off", silent=True, save_code=False,
                                         disable_git=True, x_disable_stats=True, init_timeout=60))

    def known(self):
        found = {}
        for row in self.history():
            found.setdefault(row["_step"], set()).update(row)
        return found

    def history(self):
        if not self.run.offline:
            api = self.wandb.Api(timeout=60)
            run = api.run(f"{self.run.entity}/{self.run.project}/{self.id}")
            return [row for row in run.scan_history() if isinstance(row.get("_step"), int)]
        rows = []
        for folder in sorted(os.listdir(os.path.join(self.folder, "wandb"))):
            path = os.path.join(self.folder, "wandb", folder, f"run-{self.id}.wandb")
            if folder.startswith("offline-run-") and os.path.exists(path):
                rows += offline_history(path)
        return rows

    def send(self, step, seconds, metrics):
        self.run.log(metrics, step=step)

    def end(self, done, sent):
        self.run.finish(exit_code=0 if done else 1)


def offline_history(path):
    """The history rows of an offline run: records of LevelDB's log format, each a protobuf."""
    from wandb.proto import wandb_internal_pb2
    rows, parts = [], b""
    with open(path, "rb") as file:
        data = file.read()
    at = 7  # the file's own header
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        if kind not in (1, 2, 3, 4) or at + 7 + length > len(data):
            break
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a record, or the last part of one
            record = wandb_internal_pb2.Record()
            try:
                record.ParseFromString(parts)
            except Exception:
                break
            parts = b""
            if record.HasField("history"):
                row = {item.key or ".".join(item.nested_key): json.loads(item.value_json)
                       for item in record.history.item}
                row.setdefault("_step", record.history.step.num)
                rows.append(row)
    return rows


class Mlflow:
    def __init__(self, to):
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        importlib.import_module("mlflow")
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param
        self.Metric = Metric
        uri = to["uri"] or os.environ.get("MLFLOW_TRACKING_URI")
        if not uri:
            uri = "sqlite:///" + os.path.join(os.path.abspath(to["run"]), "mlflow.db")
        self.client = MlflowClient(tracking_uri=uri)
        experiment = self.client.get_experiment_by_name(to["project"])
        place = (experiment.experiment_id if experiment
                 else self.client.create_experiment(to["project"]))
        found = self.client.search_runs([place], f"tags.`troupe.run` = '{to['id']}'")
        if found:
            self.id = found[0].info.run_id
            self.client.update_run(self.id, status="RUNNING")
        else:
            tags = {"troupe.run": to["id"], "troupe.folder": os.path.abspath(to["run"])}
            self.id = self.client.create_run(place, run_name=to["name"], tags=tags).info.run_id
            params = [Param(re.sub(r"[^\w\-. /]", "_", name), str(value)[:6000])
                      for name, value in to["config"].items()]
            for start in range(0, len(params), 100):
                self.client.log_batch(self.id, params=params[start : start + 100])

    def known(self):
        found = {}
        for name in self.client.get_run(self.id).data.metrics:
            for metric in self.client.get_metric_history(self.id, name):
                found.setdefault(metric.step, set()).add(name)
        return found

    def names(self, metrics):
        """MLflow allows letters, digits and _-. / in a name."""
        return {re.sub(r"[^\w\-. /]", "_", name.replace("@", "_at_")): value
                for name, value in metrics.items()}

    def send(self, step, seconds, metrics):
        time_ms = int(seconds * 1000)
        for start in range(0, len(metrics), 1000):
            some = list(metrics.items())[start : start + 1000]
            self.client.log_batch(self.id, metrics=[self.Metric(name, value, time_ms, step)
                                                    for name, value in some])

    def end(self, done, sent):
        self.client.set_terminated(self.id, "FINISHED" if done else "KILLED")


class Trackio:
    def __init__(self, to):
        self.trackio = importlib.import_module("trackio")
        from trackio.sqlite_storage import SQLiteStorage
        self.storage = SQLiteStorage
        # A run is known by its name alone.
        self.project, self.name = to["project"], f"{to['name']}-{to['id'][:8]}"
        self.run = self.trackio.init(project=self.project, name=self.name, resume="allow",
                                     group=to["group"] or None, config=to["config"], embed=False,
                                     auto_log_gpu=False, auto_log_cpu=False)

    def known(self):
        found = {}
        for row in self.storage.get_logs(self.project, self.name):
            if isinstance(row.get("step"), int):
                found.setdefault(row["step"], set()).update(row)
        return found

    def send(self, step, seconds, metrics):
        self.trackio.log(metrics, step=step)

    def end(self, done, sent):
        self.trackio.finish()  # its thread says nothing of rows that it could not write
        held = self.known()
        lost = sum(1 for step, names in sent.items() if names - held.get(step, set()))
        if lost:
            raise OSError(f"{lost} steps did not reach the database of trackio (is its disk full?)")


SERVICES = {"wandb": Wandb, "mlflow": Mlflow, "trackio": Trackio}


# --- the work -------------------------------------------------------------------------------------


def settings():
    """The settings of the command line; for those that are null, those of the run."""
    to = json.loads(sys.argv[1])
    to["config"] = configuration(to["run"])
    for name, key in (("project", "project"), ("name", "run_name"), ("group", "group"),
                      ("org", "org"), ("uri", "mlflow_uri")):
        if to.get(name) is None:
            to[name] = to["config"].get("logger." + key) or ""
    to["project"] = to["project"] or "troupe"
    to["name"] = to["name"] or os.path.basename(os.path.abspath(to["run"]))
    return to


def only_one(to):
    """Waits until no other process sends this run's rows to the same service."""
    folder = os.path.join(to["run"], "loggers")
    os.makedirs(folder, exist_ok=True)
    lock = open(os.path.join(folder, to["logger"] + ".lock"), "w")
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            working()
            time.sleep(0.1)


class Parent:
    """What the run says on standard input."""

    def __init__(self, follows):
        self.over, self.done, self.text = not follows, not follows, b""

    def wait(self, seconds):
        if self.over:
            return
        if select.select([0], [], [], seconds)[0]:
            data = os.read(0, 4096)
            self.text += data
            self.done = b"end" in self.text
            self.over = self.done or not data


def work():
    to = settings()
    lock = only_one(to)
    try:
        service = SERVICES[to["logger"]](to)
    except ImportError as error:
        fail(f"no Python package {PACKAGES[to['logger']]} ({error}) in {sys.executable}; unset "
             "TROUPE_LOGGER_PYTHON to have one made")
    known = service.known()
    rename = getattr(service, "names", lambda metrics: metrics)
    rows, parent, sent = Rows(os.path.join(to["run"], "metrics.jsonl")), Parent(to["follow"]), 0
    while True:
        working()
        new = rows.new()
        for row in new:
            step, metrics = row["step"], rename(numbers(row))
            there = known.setdefault(step, set())
            left = {name: value for name, value in metrics.items() if name not in there}
            if left:
                service.send(step, float(row.get("time", time.time())), left)
                there.update(left)
                sent += 1
                working()
        if new:
            tell(sent=sent)
        elif parent.over:
            break
        parent.wait(POLL_S)
    service.end(parent.done, known)
    if rows.bad:
        tell(note=f"{rows.bad} lines of metrics.jsonl could not be read")
    tell(sent=sent, ended=True)
    del lock


def main():
    threading.Thread(target=tell_alive, daemon=True).start()
    try:
        enter_environment()
        os.dup2(2, 1)  # what the packages print is no line for the run
        work()
    except Exception as error:  # a service's own errors have no common type
        text = " ".join(str(error).split())[:300]
        fail(f"{type(error).__name__}: {text}" if text else type(error).__name__)


if __name__ == "__main__":
    main()
