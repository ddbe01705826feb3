#!/usr/bin/env python3
"""Trains tiny models by every method, on every number of ranks, at every stage, and compares all with the run
in one process: the same models, samples and metrics, to the bit. README.md tells more. Exit status 1 when
a case failed, 77 when the time was up before all were done.

    matrix.py [--troupe build/troupe] [--only REGEX] [--limit-s N] [--results FILE] [--jobs N] [--keep FOLDER]
    matrix.py --daily        the cases of `./dev test`
    matrix.py --list         names of the cases
"""

import argparse
import concurrent.futures
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import cases as table  # noqa: E402
import record  # noqa: E402
from journey import Killer, learn_again  # noqa: E402
from leavings import PARTS, hashes, oldest_age, unlisted_metrics  # noqa: E402
from results import OK, Results, programs_of  # noqa: E402

SKIPPED = 77


class Matrix:
    """Runs cases in a scratch folder and writes down what came of them."""

    def __init__(self, place, results):
        self.place, self.results = place, results

    def perform(self, case):
        """Runs the case and adds its row; what came of it."""
        begun = time.monotonic()
        found, outcome = {}, OK
        folder = self.place.folder / "runs" / case.name.replace(" ", "_")
        try:
            run = self.run(case, folder)
            found = hashes(run)
            outcome = self.judged(case, run, found) or OK
        except (record.Failed, OSError, ValueError, LookupError) as problem:
            outcome = str(problem) if isinstance(problem, record.Failed) else repr(problem)
        if outcome == OK:
            shutil.rmtree(folder)
        row = self.results.add(case, found, outcome, time.monotonic() - begun)
        print(f"{case.name}: {outcome}, {row['seconds']} s", flush=True)
        return outcome

    def run(self, case, folder):
        """The run's folder, when it has ended well."""
        if len(case.legs) > 1:
            return Killer(self.place).run(case, folder)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.place.run(table.words_of(case, case.legs[0], str(folder / "run")), folder / "stderr.log")
        return folder / "run"

    def judged(self, case, run, found):
        """What is wrong, in words; nothing for a good run."""
        if names := unlisted_metrics(run):
            return f"metrics that the table of docs/algorithms.md lacks: {', '.join(names)}"
        if case == case.alone:
            return ""
        if case.bound:
            if oldest_age(run) > case.bound:
                return "tokens are too old"
            other, whose = hashes(learn_again(self.place, case, run)), "one process that learns from its log"
        else:
            other, whose = self.results.find(case.alone), "one process"
            if other is None:
                return "the run in one process failed"
        differing = [part for part in PARTS if found[part] != other[part]]
        return f"other {' and '.join(differing)} than {whose}" if differing else ""


def perform_all(matrix, chosen, options):
    """Runs what is not yet done, until the time is up: the cases that failed, and those that are left."""
    end = time.monotonic() + options.limit_s
    failed, left = [], []

    def one(case):
        if matrix.results.find(case):
            return
        if time.monotonic() > end:
            left.append(case)
            return
        if matrix.perform(case) != OK:
            failed.append(case)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, dict.fromkeys(case.alone for case in chosen)))
        list(pool.map(one, chosen))
    return failed, left


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--troupe", default="build/troupe", help="the program")
    parser.add_argument("--cuda", help="the emulated device (default: in bin/ beside the program)")
    parser.add_argument("--daily", action="store_true", help="the cases of `./dev test`")
    parser.add_argument("--only", default="", help="cases whose name holds this expression")
    parser.add_argument("--list", action="store_true", help="print the cases' names and do nothing")
    parser.add_argument("--limit-s", type=float, default=1e9, help="begin no case after so many seconds")
    parser.add_argument("--results", help="the table (default: a temporary one)")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--keep", help="work in this folder, which must not exist, and leave it")
    return parser.parse_args()


def main():
    options = arguments()
    chosen = [case for case in (table.daily() if options.daily else table.matrix())
              if re.search(options.only, case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not record.may_run():
        return SKIPPED
    troupe = Path(options.troupe).resolve()
    cuda = Path(options.cuda or troupe.parent / "bin/libtroupe_cuda_emulated.so").resolve()
    if not cuda.exists():
        print(f"there is no {cuda}, so the cases on devices are left out", file=sys.stderr)
        chosen = [case for case in chosen if case.device == "cpu"]
    scratch = Path(options.keep or tempfile.mkdtemp(prefix="troupe-matrix-")).resolve()
    scratch.mkdir(parents=True, exist_ok=not options.keep)
    begun = time.monotonic()
    place = record.Workplace(str(troupe), scratch)
    table.write_rows(scratch / "inputs/data")
    # Devices that catch host code which touches their memory.
    place.environment.update(TROUPE_CUDA_LIBRARY=str(cuda), TROUPE_CUDA_EMULATOR="guard,devices:2")
    results = Results(options.results or scratch / "results.tsv", programs_of(troupe, cuda))
    failed, left = perform_all(Matrix(place, results), chosen, options)
    print(f"{len(chosen)} cases in {time.monotonic() - begun:.0f} s: {len(failed)} failed, {len(left)} left")
    if failed:
        print(f"kept: {scratch}")
    elif not options.keep:
        shutil.rmtree(scratch, ignore_errors=True)
    if left and not failed:
        print(f"SKIPPED [1] the time was up; the same command goes on with the {len(left)} cases that are left")
    return 1 if failed else SKIPPED if left else 0


if __name__ == "__main__":
    sys.exit(main())
