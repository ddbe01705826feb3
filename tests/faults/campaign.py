#!/usr/bin/env python3
"""Faults on whole runs of the tiny model, in real processes, as a seed says. README.md tells what
strikes and what must hold. Exit status 1 when a run failed.

  campaign.py --build build --first 20      the first 20 seeds without a result; adds them to results.tsv
  campaign.py --build build --replay 17     one seed again
  campaign.py --build build --failed        the seeds whose last run failed, again
  campaign.py --plan 17                     what a seed stands for
  campaign.py --build build --calm 600      no faults: false alarms under load for so many seconds
"""

import argparse
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from calm import calm  # noqa: E402
from checks import LIMIT_S, Calm, judge  # noqa: E402
from company import write_rows  # noqa: E402
from faults import ORPHANS_S, errors_came, strike_all  # noqa: E402
from hosts import may_make_disks  # noqa: E402
from plan import plan_of  # noqa: E402
from results import NOT_RUN, Results  # noqa: E402
from stage import Stage  # noqa: E402

HERE = Path(__file__).resolve().parent


def outcome_of(stage, calm_runs):
    """Plays one run; what is wrong with it, and what its row says besides."""
    plan = stage.plan
    done = strike_all(stage)
    status = stage.company.wait(LIMIT_S)
    if status is None:
        stage.evidence()
    bad, ledger = judge(stage, status, calm_runs)
    bad += stage.bad
    if wrong := stage.end_far():
        bad.append(wrong)
    if left := stage.company.leftovers(0 if status is None else ORPHANS_S):
        bad.append(f"left: {', '.join(left)}")
    if stage.attacher:
        stage.attacher.join(LIMIT_S)
    if stage.company.crashed():
        bad.append("a process crashed")
    came = errors_came(stage)
    struck = [fault.kind for fault, how in zip(plan.faults, done)
              if how and (fault.kind != "error" or came)]
    return bad, {"struck": ", ".join(struck), "lost": ledger.get("lost"),
                 "doubled": ledger.get("doubled"), "notes": "; ".join(stage.notes)}


def one_run(args, calm_runs, folder, seed, disks):
    """The row of a seed; its folder is kept when it failed."""
    plan = plan_of(seed)
    row = {"seed": seed, "program": args.program, "configuration": plan.configuration(),
           "faults": "; ".join(fault.text() for fault in plan.faults)}
    if not disks and any(fault.kind == "disk" for fault in plan.faults):
        return {**row, "outcome": NOT_RUN, "notes": "only root may mount a disk"}
    place = folder / f"seed{seed}"
    shutil.rmtree(place, ignore_errors=True)
    stage = Stage(place, plan)
    try:
        stage.start(args.build, folder / "files")
        bad, more = outcome_of(stage, calm_runs)
        row.update(more, outcome="; ".join(bad) if bad else "ok")
        if bad:
            stage.evidence()
    finally:
        stage.end()
    if row["outcome"] == "ok" and not args.keep:
        shutil.rmtree(place, ignore_errors=True)
    return row


def chosen(args, folder):
    """The seeds to run, and the table for their rows."""
    own = args.replay or (range(args.seeds[0], args.seeds[1] + 1) if args.seeds else [])
    results = Results(args.results or (folder / "results.tsv" if own else HERE / "results.tsv"))
    return own or (results.failed() if args.failed else results.next_seeds(args.first)), results


def campaign(args, folder, seeds, results):
    """Runs them one after the other; exit status."""
    calm_runs = Calm(args.build, folder / "files", folder)
    disks = may_make_disks()
    failed = 0
    for seed in seeds:
        begun = time.monotonic()
        row = one_run(args, calm_runs, folder, seed, disks)
        failed += row["outcome"] not in ("ok", NOT_RUN)
        results.add(row)
        seconds = time.monotonic() - begun
        print(f"{seed}: {row['outcome']} ({row['configuration']}; {row['faults']}; "
              f"{row.get('notes', '')}) {seconds:.0f} s", flush=True)
    print("\n".join(results.summary()), flush=True)
    return 1 if failed else 0


def show(seed):
    plan = plan_of(seed)
    print(plan.configuration())
    print("\n".join(fault.text() for fault in plan.faults))


def commit_here():
    """The commit of this source tree; the build is taken to be of it unless --program says otherwise."""
    done = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() or "unknown"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="run N more seeds")
    parser.add_argument("--failed", action="store_true", help="run the failed seeds again")
    parser.add_argument("--replay", type=int, nargs="+", default=[], metavar="SEED")
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("FROM", "TO"), help="these, in order")
    parser.add_argument("--plan", type=int, metavar="SEED")
    parser.add_argument("--calm", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--results", help="the table (default: with --first and --failed results.tsv "
                                          "here, else a temporary one)")
    parser.add_argument("--program", default=None, help="commit of the build, for the table")
    parser.add_argument("--folder", help="where runs are kept (default: a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep good runs too")
    args = parser.parse_args()
    args.build = Path(args.build).resolve()
    args.program = args.program or commit_here()
    return args


def main():
    args = arguments()
    if args.plan is not None:
        show(args.plan)
        return 0
    # A process that crashes leaves its core where it works.
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(args.folder or tempfile.mkdtemp(prefix="troupe-faults-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "files").exists():
        subprocess.run([args.build / "bin/fault_tool", "make", folder / "files"], check=True,
                       timeout=60)
        write_rows(folder / "files")
    if args.calm:
        status = calm(args.build, folder / "files", folder, args.calm)
    else:
        status = campaign(args, folder, *chosen(args, folder))
    if not args.folder and status == 0 and not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    elif status:
        print(f"kept: {folder}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
