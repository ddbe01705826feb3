#!/usr/bin/env python3
"""The record: what small runs of every method, estimator, objective and option compute, to the bit.
Runs `troupe` on tiny models in a scratch folder, hashes what it leaves, and compares with record.tsv.

    record.py [--troupe build/troupe] [--only REGEX] [--jobs N] [--keep FOLDER]
    record.py --write            make record.tsv (never over one that is there)
    record.py --write-old-runs   make tests/data/old_run (never over one that is there)

A row that differs is printed with what differs, and the exit status is 1. record.tsv is never edited:
a change that is meant gets a row of exceptions.tsv, with its reason."""

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import runs as table  # noqa: E402
import tiny  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORD, EXCEPTIONS = HERE / "record.tsv", HERE / "exceptions.tsv"
OLD_RUNS = ROOT / "tests/data/old_run"

# What is hashed of a run, a column each.
#   weights   trained models, adapters, averages, critics: config.json, names, shapes, types, values
#   state     moments and counters of the last checkpoint, hashes of its inputs, the ledger
#   rollouts  samples of training and of evaluations
#   metrics   metrics.jsonl without the keys below
#   output    what commands that are no training print (as JSON lines) or write
COLUMNS = ["weights", "state", "rollouts", "metrics", "output"]

# Keys that differ between two runs of one program, and why.
DROPPED = {
    r"time(/.*)?": "the clock",
    r"perf/.*": "speed",
    r"async/queue": "tickets that wait at one moment: depends on who is faster",
    r"async/generators": "generators that are up at one moment: depends on how fast processes start",
    r"seconds": "the clock (bench)",
    r"arithmetic": "a class's name in a manifest: test_model has it, the other columns what it stands for",
    r"failed_groups|dropped_samples": "in data_state.json: since the program was started, for people",
    r"begins_after": "where a run begins, in a manifest: younger than the record; branches have tests of their own",
    r"(eval\.dataset |eval\.sets |env\.command|the module ).*":
        "hashes of contents that are younger than the record; runs whose contents change have tests of their own",
    r"(.*/)?length_(pearson|spearman)|alarm/reward_up_truth_down|response/clip_ratio":
        "younger than the record; unit tests hold their values",
}
DROPPED_KEY = re.compile("|".join(DROPPED))

# One set of kernels on every machine, for us and for LibTorch.
ENVIRONMENT = {"TROUPE_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1"}
LIMIT_S = 120


# --- hashes -------------------------------------------------------------------------------------------

def canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def kept(value):
    """The value without dropped keys."""
    if isinstance(value, list):
        return [kept(one) for one in value]
    if isinstance(value, dict):
        return {key: kept(one) for key, one in value.items() if not DROPPED_KEY.fullmatch(key)}
    return value


def tensors_digest(path):
    """Names, types, shapes and bytes of the tensors, whatever their order in the file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    digest = hashlib.sha256()
    for name in sorted(header):
        entry = header[name]
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        digest.update(canonical([name, entry["dtype"], entry["shape"]]).encode())
        digest.update(data[begin:end])
    return digest.hexdigest()


def put_together(folder):
    """Replaces the parts of a state that ranks have written by the files of one process."""
    ranks = json.loads((folder / "ranks.json").read_text())
    count, block = ranks["ranks"], 4 * ranks["block"]
    parts = [folder / f"rank-{rank}-of-{count}.safetensors" for rank in range(count)]
    for name in ("weights", "adam_m", "adam_v"):
        buffer = ranks["weights" if name == "weights" else "moments"]
        flat = bytearray(4 * buffer["elements"])
        for rank, part in enumerate(parts):
            data = part.read_bytes()
            start = 8 + struct.unpack("<Q", data[:8])[0]
            begin, end = json.loads(data[8:start])[name]["data_offsets"]
            own = data[start + begin:start + end]
            for i in range(0, len(own), block):
                at = (i // block * count + rank) * block
                flat[at:at + len(own[i:i + block])] = own[i:i + block]
        header, tensors = {}, b""
        for tensor in buffer["tensors"]:
            begin, size = 4 * tensor["offset"], 4 * math.prod(tensor["shape"])
            header[tensor["name"]] = {"dtype": "F32", "shape": tensor["shape"],
                                      "data_offsets": [len(tensors), len(tensors) + size]}
            tensors += flat[begin:begin + size]
        text = json.dumps(header).encode()
        (folder / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + tensors)
    counts = json.loads((folder / "trainer_state.json").read_text())
    assert counts.pop("ranks") == count and counts["format"] == 2
    counts["format"] = 1
    (folder / "trainer_state.json").write_text(json.dumps(counts))
    for path in [*parts, folder / "ranks.json"]:
        path.unlink()


def file_digest(path):
    if path.suffix == ".safetensors":
        return tensors_digest(path)
    if path.suffix == ".jsonl":
        text = "\n".join(canonical(kept(json.loads(line)))
                         for line in path.read_text().split("\n") if line)
    elif path.suffix == ".json":
        text = canonical(kept(json.loads(path.read_text())))
    elif path.name == "ledger.log":  # a checksum and the step stand before the object
        text = path.read_text()
    else:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(folder, paths):
    """One hash of files by their place below `folder`; "-" where there are none."""
    lines = [f"{path.relative_to(folder)} {file_digest(path)}\n" for path in sorted(paths)]
    return hashlib.sha256("".join(lines).encode()).hexdigest() if lines else "-"


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def hashes_of_run(run):
    """Hashes of a run folder, by column."""
    checkpoints = sorted(path for path in (run / "ckpt").glob("step_*") if path.is_dir())
    last = checkpoints[-1]
    for parts in list(last.rglob("ranks.json")):
        put_together(parts.parent)
    # Cards of models are younger than the record and name the program's version.
    files = [path for path in files_below(last) if path.name not in ("manifest.json", "README.md")]
    state = [path for path in files if path.parent.name in ("policy", "critic") or
             path.parent == last and path.suffix == ".json"]
    inputs = json.loads((last / "manifest.json").read_text())["state"]
    ledger = [path for path in [run / "ledger.log"] if path.exists()]
    parts = [digest_of(last, state), canonical(kept(inputs)), digest_of(run, ledger), last.name]
    return {
        "weights": digest_of(last, [path for path in files if path not in state]),
        "state": hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        "rollouts": digest_of(run, [*run.glob("rollouts/*.jsonl"), *run.glob("eval/*.jsonl")]),
        "metrics": digest_of(run, [run / "metrics.jsonl"]),
    }


# --- runs ---------------------------------------------------------------------------------------------

class Failed(Exception):
    pass


def may_run():
    """Whether this processor has the kernels of all runs; says so if not."""
    has = "avx2" in Path("/proc/cpuinfo").read_text()
    if not has:
        print("SKIPPED [1] these runs use AVX2 kernels, which this processor does not have")
    return has


class Workplace:
    """The scratch folder in which all runs work, each below runs/NAME; paths are relative to it."""

    def __init__(self, troupe, folder):
        self.troupe, self.folder = troupe, folder
        tiny.write_inputs(folder / "inputs")
        shutil.copytree(ROOT / "configs", folder / "configs")
        (folder / "tmp").mkdir()
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("TROUPE_")}
        self.environment.update(ENVIRONMENT, TROUPE_HOME=str(folder / "home"),
                                TMPDIR=str(folder / "tmp"))

    def start(self, command, out, log, environment=()):
        return subprocess.Popen([self.troupe, *command], cwd=self.folder,
                                env={**self.environment, **dict(environment)},
                                stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                                start_new_session=True)

    def run(self, command, log):
        """What the command prints; Failed with its words when it does not end well."""
        with open(log, "ab") as errors:
            process = self.start(command, subprocess.PIPE, errors)
            try:
                out, _ = process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                kill(process)
                raise Failed(f"hangs: {' '.join(command)}") from None
        if process.returncode != 0:
            raise Failed(f"status {process.returncode}: troupe {' '.join(command)}\n"
                         + log.read_text(errors="replace")[-2000:])
        return out.decode()

    @contextlib.contextmanager
    def serving(self, command, log):
        """The address that a server of this command names once it listens; it ends with the block."""
        if not command:
            yield ""
            return
        with open(log, "wb") as out:
            process = self.start(command, out, out)
        try:
            end = time.monotonic() + LIMIT_S
            while not (found := re.search(r"http://\S+", log.read_text())):
                if process.poll() is not None or time.monotonic() > end:
                    raise Failed(f"does not serve: {log.read_text()}")
                time.sleep(0.01)
            yield found[0]
        finally:
            kill(process)

    def run_until_saved(self, command, folder, log):
        """Kills the run after its first checkpoint; whether it was under way still."""
        with open(log, "ab") as errors:
            process = self.start(command, errors, errors)
            end = time.monotonic() + LIMIT_S
            while not list(folder.glob("ckpt/step_*/manifest.json")):
                if process.poll() is not None or time.monotonic() > end:
                    break
                time.sleep(0.001)
            kill(process)
        return process.returncode == -signal.SIGKILL


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def perform(place, run):
    """Runs its commands, as often as it takes to get the run that is wanted; its hashes by column."""
    out = place.folder / "runs" / run.name
    for _ in range(5):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        if run.old:
            shutil.copytree(OLD_RUNS / run.old, out / "run")
        hashes = attempt(place, run, out)
        if hashes:
            return hashes
    raise Failed("five attempts did not give the run that is wanted: is the machine too busy?")


def attempt(place, run, out):
    """None when the run was done before it could be killed, or learned from newer samples."""
    log = out / "stderr.log"
    with place.serving(run.server, out / "server.log") as address:
        commands = [[word.replace("OUT", f"runs/{run.name}").replace("URL", address)
                     for word in command] for command in run.commands]
        if run.kill and not place.run_until_saved(commands[0], out / "run", log):
            return None
        printed = [place.run(command, log) for command in commands]
    if run.stale and not learned_from_old_samples(out / "run"):
        return None
    if (run.old or run.kill) and "going on from" not in printed[-1] + log.read_text():
        raise Failed("did not go on from the checkpoint:\n" + printed[-1])
    hashes = hashes_of_run(out / "run") if (out / "run").exists() else {}
    hashes["output"] = digest_of_output(out, commands, printed)
    return {column: hashes.get(column, "-") for column in COLUMNS}


def learned_from_old_samples(run):
    """Whether every token of the run came from the weights that it began with."""
    lines = [json.loads(line) for path in run.glob("rollouts/*.jsonl")
             for line in path.read_text().split("\n") if line]
    return all(line["version_max"] == 0 for line in lines)


def digest_of_output(out, commands, printed):
    lines = []
    for command, text in zip(commands, printed):
        if command[0] in ("train", "merge-lora", "data") or "--out" in command and "--json" not in command:
            continue  # words for people; what they write counts
        for line in text.split("\n"):
            try:
                lines.append(canonical(kept(json.loads(line))))
            except ValueError:
                if command[0] == "config":  # without the comment that says where a value was set
                    lines.append(re.sub(r"\s+# .*", "", line))
    files = [path for path in files_below(out)
             if path.relative_to(out).parts[0] not in ("run", "first", "stderr.log", "server.log")]
    digest = digest_of(out, files)
    if not lines:
        return digest
    return hashlib.sha256(("\n".join(lines) + digest).encode()).hexdigest()


# --- the tables -----------------------------------------------------------------------------------------

def rows_of(path):
    if not path.exists():
        return []
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [line.split("\t") for line in lines[1:]]


def expected_rows():
    """Run -> column -> hash: the record, then the exceptions in their order."""
    rows = {row[0]: dict(zip(COLUMNS, row[1:])) for row in rows_of(RECORD)}
    for name, column, value, reason in rows_of(EXCEPTIONS):
        if column not in (*COLUMNS, "run", "like") or not reason.strip():
            raise SystemExit(f"{EXCEPTIONS}: {name} {column}: names no column, or gives no reason")
        if column == "run":  # it is no longer made
            rows.pop(name)
            continue
        if column == "like":  # see unlike()
            continue
        rows.setdefault(name, dict.fromkeys(COLUMNS, "-"))[column] = value
    return rows


def write_record(results):
    lines = ["# What the runs of runs.py gave when the record was made: SHA-256 by run and part. Never",
             "# edited: exceptions.tsv holds what was changed on purpose since.",
             "\t".join(["run", *COLUMNS])]
    lines += ["\t".join([name, *(hashes[column] for column in COLUMNS)])
              for name, hashes in results.items()]
    RECORD.write_text("\n".join(lines) + "\n")


def write_old_runs(place):
    """Runs that were killed after update 2 of 4, less what tells of the machine and the hour."""
    for name, (method, keys) in table.OLD.items():
        run = table.Run(f"made.{name}", [["train", method, *table.words(keys)]], keys=keys)
        folder = place.folder / "runs" / run.name
        folder.mkdir(parents=True)
        command = [word.replace("OUT", f"runs/{run.name}") for word in run.commands[0]]
        if not place.run_until_saved(command, folder / "run", folder / "stderr.log"):
            raise Failed(f"{name} ended before it could be killed")
        target = OLD_RUNS / name
        for part in ("resolved_config.yaml", "metrics.jsonl", "rollouts", "eval", "ledger.log", "ckpt"):
            path = folder / "run" / part
            if path.is_dir():
                shutil.copytree(path, target / part, ignore=shutil.ignore_patterns(".tmp*"))
            elif path.exists():
                target.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target / part)


def compare(results, chosen, whole):
    """Prints what differs from the record; how many rows do."""
    expected = expected_rows()
    wrong = 0
    for run in chosen:
        found = results[run.name]
        said = []
        if isinstance(found, Failed):
            said.append(str(found))
        elif run.name not in expected:
            said.append("is not in the record")
            said += [f"{run.name}\t{column}\t{found[column]}" for column in COLUMNS]
        else:
            wanted = expected[run.name]
            said += [f"{column} differ: {wanted[column]} in the record, now {found[column]}"
                     for column in COLUMNS if found[column] != wanted[column]]
        said += unlike(run, results)
        if said:
            wrong += 1
            print(f"{run.name}: " + "\n  ".join(said))
    if whole:
        gone = [name for name in expected if name not in results]
        wrong += len(gone)
        for name in gone:
            print(f"{name}: is in the record, but no run has this name")
    return wrong


def unlike(run, results):
    """Where a run should be like another of today, and is not."""
    if any(row[:2] == [run.name, "like"] for row in rows_of(EXCEPTIONS)):
        return []
    other, found = results.get(run.like), results.get(run.name)
    if not isinstance(other, dict) or not isinstance(found, dict):
        return []
    return [f"{column} are not those of {run.like}" for column in COLUMNS
            if found[column] != other[column]]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--troupe", default="build/troupe", help="the program")
    parser.add_argument("--only", default="", help="runs whose name holds this expression")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--keep", help="work in this folder, which must not exist, and leave it")
    parser.add_argument("--slow", action="store_true", help="say how long each run took")
    parser.add_argument("--write", action="store_true", help="make record.tsv")
    parser.add_argument("--write-old-runs", action="store_true", help="make tests/data/old_run")
    options = parser.parse_args()
    for asked, path in ((options.write, RECORD), (options.write_old_runs, OLD_RUNS)):
        if asked and path.exists():
            raise SystemExit(f"{path} is there already, and it is never made anew")
    if not may_run():
        return 77
    troupe = str(Path(options.troupe).resolve())
    scratch = Path(options.keep or tempfile.mkdtemp(prefix="troupe-record-")).resolve()
    scratch.mkdir(parents=True, exist_ok=not options.keep)
    chosen = [run for run in table.RUNS if re.search(options.only, run.name)]
    begin = time.monotonic()
    try:
        place = Workplace(troupe, scratch)
        if options.write_old_runs:
            write_old_runs(place)
            return 0
        results = perform_all(place, chosen, options)
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    took = f"{len(chosen)} runs, {time.monotonic() - begin:.0f} s"
    if options.write:
        return finish_write(results, chosen, took)
    wrong = compare(results, chosen, not options.only)
    print(f"{took}: " + (f"{wrong} differ from the record" if wrong else "all as in the record"))
    return 1 if wrong else 0


def perform_all(place, chosen, options):
    def one(run):
        begin = time.monotonic()
        try:
            result = perform(place, run)
        except (Failed, OSError, ValueError, IndexError) as error:
            result = error if isinstance(error, Failed) else Failed(repr(error))
        if options.slow:
            print(f"{time.monotonic() - begin:6.2f} s  {run.name}", flush=True)
        return result

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return dict(zip((run.name for run in chosen), pool.map(one, chosen)))


def finish_write(results, chosen, took):
    wrong = [f"{run.name}: {results[run.name]}" for run in chosen
             if isinstance(results[run.name], Failed)]
    wrong += [f"{run.name}: {what}" for run in chosen for what in unlike(run, results)]
    if wrong:
        print("\n".join(wrong) + f"\n{len(wrong)} wrong: nothing is written")
        return 1
    write_record(results)
    print(f"{took}: {RECORD} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
