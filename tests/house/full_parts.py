#!/usr/bin/env python3
"""The parts of the long tests, from tests/full_parts.tsv.

    full_parts.py --turn N            the parts in the order of the commit with that number, from part N modulo their
                                      number on: name, tab, expression for `ctest -R`
    full_parts.py --check [BUILD]     exit 1 unless each test with the label `full` is in one part and each daily test
                                      exists; 77 where not all tests are built"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "full_parts.tsv"
SKIPPED = 77


def rows():
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return [line.split("\t") for line in lines]


def in_turn(number):
    parts = {}
    for part, tests, *_ in rows():
        parts.setdefault(part, []).append(tests)
    names = list(parts)
    first = number % len(names)
    return [(name, f"^({'|'.join(parts[name])})$") for name in names[first:] + names[:first]]


def tests_of(build):
    """Name -> labels. ctest works in a folder of its own, so that it leaves the log of the present run alone."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{build}")\n')
        listed = subprocess.run([ROOT / ".venv/build/bin/ctest", "--show-only=json-v1"], cwd=folder, text=True,
                                capture_output=True, check=True)
    found = {}
    for test in json.loads(listed.stdout)["tests"]:
        labels = [one["value"] for one in test.get("properties", []) if one["name"] == "LABELS"]
        found[test["name"]] = labels[0] if labels else []
    return found


def wrong(table, tests):
    full = {name for name, labels in tests.items() if "full" in labels}
    homes = {name: set() for name in full}
    for part, expression, claim, daily in table:
        named = [name for name in full if re.fullmatch(expression, name)]
        for name in named:
            homes[name].add((part, expression))
        if not named:
            yield f"{part}: no long test is called {expression}"
        if re.search(r"\\\w", expression):
            yield f"{part}: {expression}: ctest knows no classes like \\d"
        if not claim.strip():
            yield f"{part}: {expression} claims nothing"
        if not fnmatch.filter(tests.keys() - full, daily):
            yield f"{part}: no daily test is called {daily}"
    for name in sorted(full):
        if len(homes[name]) != 1:
            yield f"{name} is in {len(homes[name])} rows of {TABLE.name}, not in one"


def main(words):
    if words[:1] == ["--turn"]:
        for name, expression in in_turn(int(words[1])):
            print(f"{name}\t{expression}")
        return 0
    build = pathlib.Path(words[1] if len(words) > 1 else ROOT / "build").resolve()
    tests = tests_of(build)
    if unbuilt := [name for name in tests if name.endswith("_NOT_BUILT")]:
        print("not built:", *unbuilt)
        return SKIPPED
    found = list(wrong(rows(), tests))
    print("\n".join(found or [f"{sum('full' in labels for labels in tests.values())} long tests, each in one part"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
