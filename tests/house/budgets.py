#!/usr/bin/env python3
"""What each room gives the compiler, against the table in docs/performance.md.

    budgets.py [BUILD]              exit 1 for a room that has other units than its row, or reads 5 % more or
                                    fewer bytes; 77 where that cannot be said
    budgets.py --compile [BUILD]    compiles every room once, and exit 1 for one whose processor time is more than
                                    1.25 of its row, in that of tests/house/fixed_source.cpp in the same run
    --write                         puts what it found into the table

A unit is one call of the compiler (build/compile_commands.json). Its bytes are the sizes of all files that it
reads, from ninja's log of dependencies: what the preprocessor hands on, with comments and what #if leaves out,
without running it for every unit. Precompiled headers are left out."""

import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance.md"
HEAD = "| room | units | MB read | compile |\n|---|---|---|---|\n"
MARGIN, COMPILE_MAX, SKIPPED = 1.05, 1.25, 77
TESTS = "tests and their programs"


def ninja(build, *words):
    done = subprocess.run([ROOT / ".venv/build/bin/ninja", "-C", build, "-t", *words], text=True, capture_output=True,
                          check=True)
    return done.stdout.splitlines()


def units(build):
    """Room -> commands of compile_commands.json for what `./dev test` builds."""
    rooms, built = {}, set(ninja(build, "inputs", "all"))
    for command in json.loads((build / "compile_commands.json").read_text()):
        folder, target = re.match(r"(?:(.*)/)?CMakeFiles/([^/]+)\.dir/", command["output"]).groups()
        if folder is None or command["output"] not in built:
            continue
        product = re.match(r"troupe([_-]|$)", target) and "emulated" not in target and not folder.startswith("tests/")
        rooms.setdefault(folder if product else TESTS, []).append(command)
    return rooms


def files_read(build):
    """Output -> the files that it was made from."""
    found, files = {}, None
    for line in ninja(build, "deps"):
        if line.startswith("    "):
            files.append(line.strip())
        elif ": #deps" in line:
            files = found[line.split(": #deps")[0]] = []
    return found


def measure(build):
    """Room -> (units, MB); None when one of them was not built."""
    rooms, read, sizes = {}, files_read(build), {}

    def size(file):
        if file not in sizes:
            path = build / file
            sizes[file] = path.stat().st_size if path.exists() and not file.endswith(".gch") else 0
        return sizes[file]

    for room, commands in units(build).items():
        if any(command["output"] not in read for command in commands):
            return None
        total = sum(size(file) for command in commands for file in read[command["output"]])
        rooms[room] = len(commands), total / 1e6
    return rooms


def seconds_of(command, build, out):
    """Processor seconds of one call of the compiler, without a cache."""
    words = shlex.split(command["command"])
    words = words[[os.path.basename(word).startswith(("c++", "g++", "clang++")) for word in words].index(True):]
    words[words.index("-o") + 1] = out
    words = [word for i, word in enumerate(words) if word != "-MD" and not {"-MT", "-MF"} & {word, words[i - 1]}]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=build, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compile_rooms(build):
    """Room -> processor time of its units, in compiles of the fixed source before and after it."""
    costs = {}
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.o")
        fixed = {"command": f"g++ -std=c++20 -O1 -c {ROOT}/tests/house/fixed_source.cpp -o {out}"}
        speed = seconds_of(fixed, build, out)
        for room, commands in sorted(units(build).items()):
            if room == TESTS:
                continue
            spent = sum(seconds_of(command, build, out) for command in commands)
            before, speed = speed, seconds_of(fixed, build, out)
            costs[room] = spent / ((before + speed) / 2)
            print(f"{room}: {costs[room]:.1f}", flush=True)
    return costs


def rows():
    """Room -> (units, MB, compile) of the page; compile is None where it was not measured."""
    found = {}
    for line in PAGE.read_text().partition(HEAD)[2].splitlines():
        if not line.startswith("| "):
            break
        room, count, megabytes, cost = (word.strip() for word in line.strip("|").split("|"))
        found[room] = int(count), float(megabytes), float(cost) if cost else None
    return found


def write(table):
    before, _, after = PAGE.read_text().partition(HEAD)
    rest = re.sub(r"\A(\|.*\n)*", "", after)
    lines = [f"| {room} | {count} | {megabytes:.1f} | {'' if cost is None else f'{cost:.1f}'} |\n"
             for room, (count, megabytes, cost) in sorted(table.items())]
    PAGE.write_text(before + HEAD + "".join(lines) + rest)


def wrong_counts(found, table):
    for room in sorted(set(found) | set(table)):
        if room not in table or room not in found:
            yield f"{room}: no {'row in' if room not in table else 'such room any more, but a row in'} {PAGE.name}"
            continue
        (count, megabytes), (counted, budget, _) = found[room], table[room]
        if count != counted:
            yield f"{room}: {count} units, {counted} in its row"
        if not budget / MARGIN <= megabytes <= budget * MARGIN:
            yield f"{room}: reads {megabytes:.1f} MB, {budget:.1f} in its row"


def wrong_costs(costs, table):
    for room, cost in costs.items():
        row = table.get(room, (0, 0, None))[2]
        if row is None:
            yield f"{room}: no row with a compile"
        elif cost > COMPILE_MAX * row:
            yield f"{room}: compiles in {cost:.1f} fixed sources, {row:.1f} in its row"


def main(words):
    flags = {word for word in words if word.startswith("--")}
    build = pathlib.Path(*[word for word in words if word not in flags] or [ROOT / "build"]).resolve()
    release = pathlib.Path("/etc/os-release")
    if not release.exists() or "VERSION_CODENAME=bookworm" not in release.read_text():
        print("budgets are those of Debian 12's compiler and headers")
        return SKIPPED
    found, table = measure(build), rows()
    if found is None:
        print("not everything is built")
        return SKIPPED
    costs = compile_rooms(build) if "--compile" in flags else {}
    if "--write" in flags:
        write({room: (*found[room], costs.get(room, table.get(room, (0, 0, None))[2])) for room in found})
        return 0
    wrong = [*(wrong_costs(costs, table) if costs else wrong_counts(found, table))]
    print("\n".join([*wrong, "budgets.py --write makes the table of docs/performance.md anew"] if wrong else ["kept"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
