#!/usr/bin/env python3
"""kernel_times.py MARK PROGRAM [WORD..]: runs a program under ncu and prints a line of JSON for each kernel with its
share of one step: of what is launched from behind one kernel whose name has MARK to the next, the last two of them."""
import csv
import io
import json
import re
import shutil
import subprocess
import sys

LAUNCHES = 2500


def launches(words):
    """Name and microseconds of each kernel, in order."""
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    command = [ncu, "--clock-control", "none", "--graph-profiling", "node", "--metrics", "gpu__time_duration.sum",
               "--launch-count", str(LAUNCHES), "--kill", "yes", "--csv", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = ran.stdout.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        sys.exit(f"kernel_times.py: ncu printed no table: {(ran.stdout + ran.stderr)[-500:]}")
    scale = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}
    for row in csv.DictReader(io.StringIO("\n".join(lines[begin:]))):
        if row["Metric Name"] == "gpu__time_duration.sum":
            name = re.sub(r"<.*|\(.*", "", row["Kernel Name"]).split("::")[-1]
            yield name, float(row["Metric Value"].replace(",", "")) * scale[row["Metric Unit"]]


def step_of(found, mark):
    marks = [i for i, (name, _) in enumerate(found) if mark in name]
    # Marks of one step may follow each other: an end is one that is not followed by another at once.
    ends = [i for i in marks if i + 1 not in marks]
    return found[ends[-2] + 1:ends[-1] + 1] if len(ends) > 1 else found


def main():
    step = step_of(list(launches(sys.argv[2:])), sys.argv[1])
    total = sum(us for _, us in step)
    by_name = {}
    for name, us in step:
        count, sum_us = by_name.get(name, (0, 0.0))
        by_name[name] = (count + 1, sum_us + us)
    print(json.dumps({"kernels": len(step), "us": round(total, 1)}))
    for name, (count, us) in sorted(by_name.items(), key=lambda one: -one[1][1]):
        print(json.dumps({"kernel": name, "count": count, "us": round(us, 1), "share": round(us / total, 4)}))


main()
