#!/usr/bin/env python3
"""What ranks cost: 2 ranks with 1 thread each beside 1 rank with 2 threads, same lanes, in turn; the bytes that a
step moves beside the least that its stage needs; and what the mover reaches of its limits. Quartiles as
tables, all lines of `troupe bench` as JSON. Run by hand on a quiet machine; with the defaults it takes
about an hour.

    rank_costs.py --model ~/.cache/troupe/models/SmolLM2-135M-Instruct [--pairs 7] [--objective sft grpo]
    rank_costs.py --model MODEL --pairs 1 --rows 512      # whether it works
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

LANES = 2
SAMPLES, PROMPT, NEW = 8, 64, 65      # of a group: 64 + 8 x 64 rows
SEQUENCE = 257                        # of sft: 256 rows
GOALS = "goals: rate 0.9, bytes 1.0 to 1.1 of the least"


def bench(args, name, *flags):
    """The JSON line of `troupe bench NAME`; the program ends when it fails."""
    command = [args.troupe, "bench", name, "--json", *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    line = done.stdout.strip().splitlines()[-1]
    if args.json:
        with open(args.json, "a", encoding="utf-8") as out:
            out.write(line + "\n")
    return json.loads(line)


def step(args, objective, ranks, threads, rows, stage=0):
    """One measurement of at least so many rows a step: the median of 3 steps after one that warms up."""
    if objective == "sft":
        sizes = ["--prompts", -(-rows // (SEQUENCE - 1)), "--new-tokens", SEQUENCE]
    else:
        sizes = ["--prompts", -(-rows // (PROMPT + SAMPLES * (NEW - 1))), "--samples", SAMPLES,
                 "--prompt-tokens", PROMPT, "--new-tokens", NEW]
    return bench(args, "train", "--model", args.model, "--objective", objective, "--lanes", LANES, *sizes,
                 "--ranks", ranks, "--threads", threads, "--zero-stage", stage)


def quartiles(values):
    """Lowest, lower quartile, median, upper quartile, highest."""
    if len(values) == 1:
        return values * 5
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return [min(values), low, middle, high, max(values)]


def told(values):
    return " ".join(f"{value:.3f}" for value in quartiles(values))


def rates(args):
    """Pairs in turn; the order changes from pair to pair, so that a drift of the machine cancels out."""
    print(f"Load before: {os.getloadavg()[0]:.2f}. Ratio of 2 x 1 to 1 x 2: lowest, quartiles, highest.\n\n"
          "| objective | rows a step | rate | processor seconds | PSS of rank 0 | rows a second: 1 x 2, 2 x 1 |\n"
          "|---|---|---|---|---|---|", flush=True)
    for objective in args.objective:
        one, two = [], []
        for pair in range(args.pairs):
            order = [(one, 1, 2), (two, 2, 1)]
            for seen, ranks, threads in order if pair % 2 == 0 else reversed(order):
                seen.append(step(args, objective, ranks, threads, args.rows))
            print(f"{objective}, pair {pair + 1} of {args.pairs}: "
                  f"{two[-1]['rows_per_s'] / one[-1]['rows_per_s']:.3f}", file=sys.stderr, flush=True)
        ratio = {key: [b[key] / a[key] for a, b in zip(one, two)]
                 for key in ("rows_per_s", "update_cpu_s", "peak_mb")}
        speed = [statistics.median(line["rows_per_s"] for line in seen) for seen in (one, two)]
        print(f"| {objective} | {one[0]['rows']} | {told(ratio['rows_per_s'])} | {told(ratio['update_cpu_s'])} "
              f"| {told(ratio['peak_mb'])} | {speed[0]:.0f}, {speed[1]:.0f} |", flush=True)


def moved(args):
    """Does not depend on the machine: one step each, of few rows."""
    print("\n| objective | stage | bytes of all ranks in a step | times the least |\n|---|---|---|---|", flush=True)
    for objective in args.objective:
        for stage in range(4):
            line = step(args, objective, 2, 1, args.rows_of_stages, stage)
            print(f"| {objective} | {stage} | {line['sent_bytes'] / 1e6:.0f} MB "
                  f"| {line['sent_share_of_least']:.3f} |", flush=True)


def mover(args):
    print("\n| path | send | all_gather | all_to_all | limit, GB/s |\n|---|---|---|---|---|", flush=True)
    for path in ("shm", "tcp"):
        seen = [bench(args, "collectives", "--path", path, "--ranks", 2) for _ in range(args.pairs)]
        shares = [told([line[f"{name}_share_of_limit"] for line in seen])
                  for name in ("send", "all_gather", "all_to_all")]
        print(f"| {path} | {' | '.join(shares)} | {told([line['limit_gb_per_s'] for line in seen])} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--troupe", default="build/troupe")
    p.add_argument("--model", required=True)
    p.add_argument("--objective", nargs="+", default=["sft", "grpo"])
    p.add_argument("--pairs", type=int, default=7)
    p.add_argument("--rows", type=int, default=4096, help="of a step, at least")
    p.add_argument("--rows-of-stages", type=int, default=1024,
                   help="of a step whose bytes are counted; fill the lanes")
    p.add_argument("--only", choices=["rates", "moved", "mover"], nargs="+", default=["rates", "moved", "mover"])
    p.add_argument("--json", help="append all lines of `troupe bench` to this file as they come")
    args = p.parse_args()
    for part in (rates, moved, mover):
        if part.__name__ in args.only:
            part(args)
    print(f"\n{args.pairs} pairs; {GOALS}.")


if __name__ == "__main__":
    main()
