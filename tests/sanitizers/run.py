#!/usr/bin/env python3
"""Builds the program with a sanitizer and runs what starts and stops most under it: the company on the
simulator (its 300 seeds) and whole runs of real processes under faults (three seeds).

    tests/sanitizers/run.py asan|tsan [--simulator | --runs]     # asan: addresses; tsan: threads

--simulator and --runs do one of the two. Exit status 1 when a run fails or the sanitizer reports anything; its
reports stay in build-asan/reports or build-tsan/reports. Building takes about as long as `./dev build`, for each.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = ROOT / ".venv" / "build" / "bin" / "cmake"
SEEDS = (1, 3)  # of tests/faults
OPTIONS = {
    # The leaks of a process that is killed say nothing, and LibTorch keeps what it has for good.
    "asan": {"ASAN_OPTIONS": "detect_leaks=0:log_path={reports}/report"},
    "tsan": {"TSAN_OPTIONS": "log_path={reports}/report:suppressions=" + str(ROOT / "tests/sanitizers/tsan.txt")},
}


def build(preset, targets):
    environment = {**os.environ, "PATH": f"{CMAKE.parent}:{os.environ['PATH']}"}
    # Undefined behaviour is `./dev test --preset asan`'s: with it this would take hours to compile.
    for words in (["--preset", preset, f"-DTROUPE_SANITIZE={'address' if preset == 'asan' else 'thread'}"],
                  ["--build", ROOT / f"build-{preset}", "--target", *targets]):
        done = subprocess.run([CMAKE, *words], cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"cmake {words[0]} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def run(name, words, environment):
    print(f"{name}: {' '.join(str(word) for word in words)}", flush=True)
    done = subprocess.run([str(word) for word in words], cwd=ROOT, env=environment, check=False)
    return [] if done.returncode == 0 else [f"{name} ended with status {done.returncode}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", choices=sorted(OPTIONS))
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--simulator", action="store_true")
    which.add_argument("--runs", action="store_true")
    args = parser.parse_args()
    preset = args.preset
    build(preset, ([] if args.runs else ["test_sim"]) + ([] if args.simulator else ["troupe", "fault_tool"]))
    folder = ROOT / f"build-{preset}"
    reports = folder / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    environment = {**os.environ, "TROUPE_CHECK_INVARIANTS": "1", **{key: text.format(reports=reports) for key, text in OPTIONS[preset].items()}}
    bad = []
    if not args.runs:
        bad += run("simulator", [folder / "bin/test_sim", "--gtest_filter=CompanyWorld.*:RandomCalls*"], environment)
    if not args.simulator:
        bad += run("faults", [sys.executable, "-B", ROOT / "tests/faults/campaign.py", "--build", folder,
                              "--seeds", *SEEDS], environment)
    for report in sorted(reports.iterdir()):
        bad.append(f"{report}:\n{report.read_text(errors='replace')[:3000]}")
    print("\n".join(bad) if bad else f"{preset}: no report")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
