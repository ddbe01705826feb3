#!/usr/bin/env python3
"""Makes each mistake of mutants.tsv in a copy of the tree and shows that the simulator finds it, or the unit
tests or the file of tests/oracle that its line names.

    tests/sim/mutants.py [--here] [NAME ...]      # needs ./dev build before; about a minute a mistake

The copy is a git worktree in build/mutants, of the last commit, with a build of its own. With --here the mistakes are made
in this tree, built into build/ and taken back; nobody else may edit or build it meanwhile.
Exit status 1 when a mistake is not found within the seeds of the test.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
CMAKE = ROOT / ".venv" / "build" / "bin" / "cmake"
SIMULATOR = "test_sim CompanyWorld.NothingIs*"


def run(*words, **more):
    return subprocess.run([str(w) for w in words], text=True, capture_output=True, **more)


def mutants():
    for line in (ROOT / "tests/sim/mutants.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            name, file, old, new, test = (line.split("\t") + ["", ""])[:5]
            yield name, file, old.replace("\\n", "\n"), new.replace("\\n", "\n"), test or SIMULATOR


def make_copy():
    if not COPY.exists():
        run("git", "worktree", "prune", cwd=ROOT)
        made = run("git", "worktree", "add", "--detach", COPY, "HEAD", cwd=ROOT)
        if made.returncode != 0:
            sys.exit(made.stderr)
        (COPY / ".venv").symlink_to(ROOT / ".venv")
    run("git", "checkout", "-q", "--detach", run("git", "rev-parse", "HEAD", cwd=ROOT).stdout.strip(), cwd=COPY)
    run("git", "checkout", "-q", "--", ".", cwd=COPY)
    path = {"PATH": f"{CMAKE.parent}:/usr/bin:/bin", "HOME": str(pathlib.Path.home())}
    configured = run(CMAKE, "--preset", "dev", cwd=COPY, env=path)
    if configured.returncode != 0:
        sys.exit(configured.stdout + configured.stderr)


def play(tree, folder, binary, tests):
    if binary != "oracle":
        return run(folder / "bin" / binary, f"--gtest_filter={tests}", timeout=600)
    there = {**os.environ, "TROUPE_BUILD_DIR": folder, "TROUPE_SOURCE_DIR": tree}
    return run(tree / "tests/oracle/in_environment.sh", "agents", tests, timeout=600, env=there)


def main():
    here = "--here" in sys.argv[1:]
    names = [word for word in sys.argv[1:] if word != "--here"]
    tree, folder = (ROOT, ROOT / "build") if here else (COPY, COPY / "build-dev")
    if not here:
        make_copy()
    found = True
    for name, file, old, new, test in mutants():
        if names and name not in names:
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
                output, status = played.stdout, played.returncode
            except subprocess.TimeoutExpired as late:
                output, status = "", "no end"
        finally:
            source.write_text(text)
        seed = re.search(r"TROUPE_SIM_SEED=(\d+)", output)
        wrong = re.search(r"(?:Fail(?:ed|ure)\n|\nE  +)(.*)", output)
        where = f"seed {seed[1]}" if seed else binary
        said = f"{where}: {wrong[1][:100]}" if wrong else f"status {status}"
        print(f"{'found' if status != 0 else 'NOT FOUND'}\t{name}\t{said}", flush=True)
        found = found and status != 0
    sys.exit(0 if found else 1)


if __name__ == "__main__":
    main()
