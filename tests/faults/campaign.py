#!/usr/bin/env python3
"""Random faults on whole runs of the tiny model: a process killed or frozen at a random moment, the
head killed and the command given again, and long calm under load. Prints one line of JSON a run and
a summary; exit status 1 when a run hung, lost, doubled or ended with other bits than it must.

  campaign.py --build build --runs 50 --seed 1
  campaign.py --build build --calm 600
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from company import Company

UPDATES = 60
LIMIT_S = 60
SYNCHRONOUS = ["--train.max_steps", str(UPDATES), "--rollout.max_new_tokens", "16"]
TWO = ["--rollout.generators", "2"]
STALE = ["--train.staleness_max", "1"]
# Of these only the text may differ from an undisturbed run's: which attempt gave the tokens.
MODES = {"one": [], "two": TWO, "stale": TWO + STALE}


def wait_for_steps(company, steps, limit_s=30):
    end = time.monotonic() + limit_s
    while company.steps() < steps and company.process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)


def noticed_s(company, node, since):
    """Seconds from the fault to the head's note about it; None without a note."""
    for when, line in company.log():
        known = f"node/{node} is lost" in line or f"node/{node} did not join" in line
        if when >= since - 0.002 and known:
            return when - since
    return None


def strike(company, rng, kind):
    """Kills or freezes a node at a random moment; what was done, or None when the run was over."""
    moment = rng.choice(["start", "early", "late"])
    share = rng.random()
    victim = rng.random()
    if moment == "start":
        end = time.monotonic() + 10
        while not company.nodes() and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(share * 0.8)
    else:
        wait_for_steps(company, 1 if moment == "early" else rng.randrange(2, UPDATES // 2))
        time.sleep(share * 0.05)
    nodes = sorted(company.nodes().items())
    if not nodes or company.process.poll() is not None:
        return None
    node, pid = nodes[int(victim * len(nodes))]
    steps = company.steps()
    try:
        os.kill(pid, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
    except ProcessLookupError:
        return None
    return {"node": node, "pid": pid, "at": time.time(), "steps": steps, "moment": moment}


def strike_head(company, rng, words):
    """Kills the head, sees its children go, and gives the command again."""
    wait_for_steps(company, rng.randrange(1, UPDATES // 2))
    nodes = company.nodes()
    steps = company.steps()
    company.process.kill()
    company.process.wait()
    left = company.leftovers()
    again = Company(company.build, company.files, company.run, words)
    return again, {"node": "head", "steps": steps, "children": len(nodes), "left": len(left)}


def one_run(args, files, folder, number, whole):
    rng = random.Random(args.seed * 1_000_003 + number)
    kind = rng.choice(["kill", "kill", "kill", "freeze", "freeze", "freeze", "head"])
    mode = rng.choice(sorted(MODES))
    words = SYNCHRONOUS + MODES[mode]
    begun = time.monotonic()
    company = Company(args.build, files, folder / f"run{number}", words)
    line = {"run": number, "fault": kind, "mode": mode}
    bad = []
    try:
        if kind == "head":
            company, fault = strike_head(company, rng, words)
            line.update(fault)
            if fault["left"]:
                bad.append("children outlived the head")
        else:
            fault = strike(company, rng, kind)
            if fault is None:
                line["node"] = "none: the run was over"
            else:
                line.update(node=fault["node"], steps=fault["steps"], moment=fault["moment"])
                # A process that has not joined yet gives no signs of life that could end.
                line["joining"] = fault["moment"] == "start" and fault["steps"] == 0
        status = company.wait(LIMIT_S)
        line["status"] = status
        line["left"] = len(company.leftovers())
        if status is None:
            bad.append("hung")
        elif status != 0:
            bad.append(f"ended with status {status}")
        if line["left"]:
            bad.append("processes were left")
        if kind != "head" and fault is not None:
            found = noticed_s(company, fault["node"], fault["at"])
            if found is not None:
                line["noticed_s"] = round(found, 3)
        checked = company.check()
        line.update(lost=checked.get("lost"), doubled=checked.get("doubled"))
        if not checked.get("clean"):
            bad.append(f"ledger: {checked}")
        line["age"] = company.ages()
        if line["age"] > (1 if mode == "stale" else 0):
            bad.append("tokens are too old")
        if mode != "stale" and status == 0:
            line["same_weights"] = company.bits(UPDATES)["weights"] == whole["weights"]
            if not line["same_weights"]:
                bad.append("other weights than the undisturbed run's")
    finally:
        company.end()
    line["seconds"] = round(time.monotonic() - begun, 1)
    if bad:
        line["bad"] = bad
        line["output"] = company.output()[-2000:]
    elif not args.keep:
        shutil.rmtree(company.run, ignore_errors=True)
    return line


def middle(values):
    values = sorted(values)
    return values[len(values) // 2] if values else None


def campaign(args, files, folder):
    whole = undisturbed(args, files, folder)
    lines = []
    for number in range(args.first, args.first + args.runs):
        line = one_run(args, files, folder, number, whole)
        lines.append(line)
        print(json.dumps(line), flush=True)
    summary = {"runs": len(lines), "seed": args.seed,
               "bad": sum("bad" in line for line in lines),
               "hangs": sum(line["status"] is None for line in lines),
               "lost": sum(line["lost"] or 0 for line in lines),
               "doubled": sum(line["doubled"] or 0 for line in lines)}
    for kind in ("kill", "freeze"):
        struck = [line for line in lines if line["fault"] == kind and "moment" in line]
        times = [line["noticed_s"] for line in struck
                 if "noticed_s" in line and not line["joining"]]
        joining = [line["noticed_s"] for line in struck if "noticed_s" in line and line["joining"]]
        summary[kind] = {"struck": len(struck), "noticed": len(times), "p50_s": middle(times),
                         "max_s": max(times, default=None), "before_it_had_joined": joining}
    print(json.dumps({"summary": summary}), flush=True)
    return 1 if summary["bad"] else 0


def undisturbed(args, files, folder):
    company = Company(args.build, files, folder / "whole", SYNCHRONOUS)
    try:
        status = company.wait(LIMIT_S)
        if status != 0:
            sys.exit(f"the undisturbed run ended with {status}: {company.output()[-2000:]}")
        return company.bits(UPDATES)
    finally:
        company.end()


def calm(args, files, folder):
    """Both cores busy with something else: nobody may be called silent, frozen or lost."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
               for _ in range(2 * os.cpu_count())]
    found, runs, failed = [], 0, 0
    end = time.monotonic() + args.calm
    try:
        while time.monotonic() < end:
            words = ["--train.max_steps", "100000", "--train.num_episodes", "1000000",
                     "--ckpt.save_steps", "50", *TWO, *STALE]
            company = Company(args.build, files, folder / f"calm{runs}", words)
            runs += 1
            try:
                company.wait(max(1, end - time.monotonic()))
                company.nodes()
                if company.process.poll() is not None:
                    failed += 1
                else:
                    company.process.terminate()
                    failed += company.wait(LIMIT_S) != 130
            finally:
                company.end()
            found += [line for _, line in company.log()
                      if any(word in line for word in ("silent", "frozen", "is lost"))]
            print(json.dumps({"calm_run": company.steps(), "notes": found}), flush=True)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    summary = {"calm_s": args.calm, "runs": runs, "failed": failed, "false_alarms": len(found)}
    print(json.dumps({"summary": summary}), flush=True)
    return 1 if found or failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="build folder")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calm", type=float, default=0, metavar="SECONDS",
                        help="no faults: look for false alarms under load for so long")
    parser.add_argument("--folder", help="where runs are kept (default: a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep good runs too")
    args = parser.parse_args()
    args.build = Path(args.build).resolve()
    folder = Path(args.folder or tempfile.mkdtemp(prefix="troupe-faults-")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / "files"
    if not files.exists():
        subprocess.run([args.build / "bin/fault_tool", "make", files], check=True, timeout=60)
    status = calm(args, files, folder) if args.calm else campaign(args, files, folder)
    if not args.folder and status == 0:
        shutil.rmtree(folder, ignore_errors=True)
    elif status:
        print(f"kept: {folder}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
