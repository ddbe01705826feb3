#!/usr/bin/env python3
"""Makes each mistake of mutants.tsv in a copy of the tree and shows that the simulator finds it, or the unit
tests or the file of tests/oracle that its line names; where a line has words, by printing them.

    tests/sim/mutants.py [--here | --copy FOLDER] [--preset release] [NAME ...]
                              # needs ./dev build before; about a minute a mistake

The copy is a git worktree in build/mutants or FOLDER, of the last commit, with a build of its own. With --here the mistakes
are made in this tree, built into build/ and taken back; nobody else may edit or build it meanwhile.
Exit status 1 when a mistake is not found within the seeds of the test.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = ROOT / ".venv" / "build" / "bin" / "cmake"
FOLDERS = {"dev": "build-dev", "release": "build"}
SIMULATOR = "test_sim CompanyWorld.NothingIs*"


def run(*words, **more):
    return subprocess.run([str(w) for w in words], text=True, capture_output=True, **more)


def mutants():
    for line in (ROOT / "tests/sim/mutants.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            name, file, old, new, test, said = (line.split("\t") + ["", ""])[:6]
            yield name, file, old.replace("\\n", "\n"), new.replace("\\n", "\n"), test or SIMULATOR, said


def make_copy(copy, preset):
    if not copy.exists():
        run("git", "worktree", "prune", cwd=ROOT)
        made = run("git", "worktree", "add", "--detach", copy, "HEAD", cwd=ROOT)
        if made.returncode != 0:
            sys.exit(made.stderr)
        (copy / ".venv").symlink_to(ROOT / ".venv")
    run("git", "checkout", "-q", "--detach", run("git", "rev-parse", "HEAD", cwd=ROOT).stdout.strip(), cwd=copy)
    run("git", "checkout", "-q", "--", ".", cwd=copy)
    path = {**os.environ, "PATH": f"{CMAKE.parent}:{os.environ['PATH']}"}
    configured = run(CMAKE, "--preset", preset, cwd=copy, env=path)
    if configured.returncode != 0:
        sys.exit(configured.stdout + configured.stderr)


def play(tree, folder, binary, tests):
    there = {**os.environ, "TROUPE_BUILD_DIR": folder, "TROUPE_SOURCE_DIR": tree, "TROUPE_CHECK_INVARIANTS": "1"}
    if binary != "oracle":
        return run(folder / "bin" / binary, f"--gtest_filter={tests}", timeout=600, env=there)
    return run(tree / "tests/oracle/in_environment.sh", "agents", tests, timeout=600, env=there)


def main():
    reader = argparse.ArgumentParser()
    place = reader.add_mutually_exclusive_group()
    place.add_argument("--here", action="store_true")
    place.add_argument("--copy", type=pathlib.Path, default=ROOT / "build" / "mutants")
    reader.add_argument("--preset", default="dev", choices=FOLDERS,
                        help="release: much of the copy comes from the compiler's cache")
    reader.add_argument("names", nargs="*")
    asked = reader.parse_args()
    known = {mutant[0] for mutant in mutants()}
    if unknown := [name for name in asked.names if name not in known]:
        sys.exit(f"mutants.tsv has no row {', '.join(unknown)}")
    tree, folder = (ROOT, ROOT / "build") if asked.here else (asked.copy, asked.copy / FOLDERS[asked.preset])
    if not asked.here:
        make_copy(asked.copy, asked.preset)
    found = True
    for name, file, old, new, test, said in mutants():
        if asked.names and name not in asked.names:
            continue
        source = tree / file
        text = source.read_text()
        if text.count(old) != 1:
            sys.exit(f"{name}: {file} has the text {text.count(old)} times")
        source.write_text(text.replace(old, new))
        binary, tests = test.split()
        try:
            built = run(CMAKE, "--build", folder, "--target", "troupe" if binary == "oracle" else binary)
            if built.returncode != 0:
                sys.exit(f"{name} does not compile:\n{built.stdout[-3000:]}")
            try:
                played = play(tree, folder, binary, tests)
                output, status = played.stdout + played.stderr, played.returncode
            except subprocess.TimeoutExpired as late:
                output, status = "", "no end"
        finally:
            source.write_text(text)
        seed = re.search(r"TROUPE_SIM_SEED=(\d+)", output)
        wrong = re.search(r"(?:Fail(?:ed|ure)\n|\nE  +|troupe: bug at \S+ )(.*)", output)
        where = f"seed {seed[1]}" if seed else binary
        here = status != 0 and said in output
        print(f"{'found' if here else 'NOT FOUND'}\t{name}\t{where}: {wrong[1][:100] if wrong else f'status {status}'}",
              flush=True)
        found = found and here
    sys.exit(0 if found else 1)


if __name__ == "__main__":
    main()
