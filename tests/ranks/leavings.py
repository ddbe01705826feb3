"""What a run leaves, as hashes that no number of ranks may change."""

import hashlib
import json
import re

from cases import ROOT
import record  # of tests/record: which metrics are times, and how tensors are hashed

PARTS = ("model", "samples", "metrics")


def lines_of(path, dropped=()):
    """The objects of a JSON lines file without times, speeds, counts of a moment, and `dropped`."""
    return [{key: value for key, value in record.kept(json.loads(line)).items() if key not in dropped}
            for line in path.read_text(encoding="utf-8").split("\n") if line]


def hashes(run):
    """model: what is exported (models, adapters, the critic's), not the files of a state, which depend on
    who writes them. samples: all rollouts, without the attempt that gave them. metrics: all digits."""
    last = sorted(path for path in (run / "ckpt").glob("step_*") if path.is_dir())[-1]
    exported = [path for path in record.files_below(last)
                if path.parent != last and path.relative_to(last).parts[0] not in ("policy", "critic")]
    if not exported:
        raise record.Failed(f"{last} holds no model")
    rollouts = [(path.name, lines_of(path, ("attempt",))) for path in sorted(run.glob("rollouts/*.jsonl"))]
    metrics = lines_of(run / "metrics.jsonl")
    return {"model": record.digest_of(last, exported), "samples": digest(rollouts) if rollouts else "-",
            "metrics": digest(metrics)}


def digest(value):
    return hashlib.sha256(record.canonical(value).encode()).hexdigest()


def listed_metrics():
    """The metrics in the tables "Ranks" and "Counts of the head" of docs/algorithms.md."""
    text = (ROOT / "docs/algorithms.md").read_text()
    parts = [text.split(f"\n## {title}\n")[1].split("\n## ")[0] for title in ("Ranks", "Counts of the head")]
    rows = re.findall(r"^\| .*$", "\n".join(parts), re.MULTILINE)
    return set(re.findall(r"`([a-z]+/[a-z_]+)`", "".join(rows)))


def unlisted_metrics(run):
    """Names in the run's metrics.jsonl that the table does not have. Times are of no interest."""
    names = {key for line in lines_of(run / "metrics.jsonl") for key in line if "/" in key}
    return sorted(names - listed_metrics())


def oldest_age(run):
    """In updates, of any token that was learned from."""
    return max(line.get("async/staleness_max", 0) for line in lines_of(run / "metrics.jsonl"))
