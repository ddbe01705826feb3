"""The time of a training step by kernel, as a row of a Markdown table: where it goes between the products.

    step_by_kernel.py --troupe build/troupe --model MODEL [--objective sft] [--isa avx2]

Samples the threads of `troupe bench train` by perf (cpu-clock, of all it runs: start and loading are the
group `start`, told by what they do: zeroing new pages, dynamic linking, LibTorch's registration, the probe of
the peak). Shares are of all other samples. With --isa the level of the kernels is forced, which on another
processor is a hint and no figure.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile

GROUPS = [
    ("start", r"clear_page|page_fault|fma_peak|read_probe|_dl_|do_lookup|c10::|torch::|smaps|copy_user|filemap|folio|"
              r"\[k\]|Json|basic_json|widen_bf16"),
    ("products", r"BlockA|blocked<|::block<"),
    ("attention", r"dot_keys|add_values|attention_item|attention_row|kv_gather|kv_write"),
    ("its gradient", r"attention_gradient|outer<"),
    ("activation", r"gate_mul|silu|gelu"),
    ("loss", r"vocab_"),
    ("optimiser", r"adamw|add_rows|sum_squares|scale"),
    ("packing", r"pack_|transpose"),
    ("norms, rotation", r"rmsnorm|norm|rope|rotate"),
    ("waiting", r"TeamBarrier|futex|pause"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--troupe", required=True, type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--objective", default="sft")
    parser.add_argument("--isa", default="")
    options = parser.parse_args()
    environment = dict(os.environ, **({"TROUPE_ISA": options.isa} if options.isa else {}))
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "perf.data"
        done = subprocess.run(
            ["perf", "record", "-q", "-F", "199", "-e", "cpu-clock", "-o", data, "--", options.troupe, "bench", "train",
             "--model", options.model, "--objective", options.objective, "--json"],
            env=environment, capture_output=True, text=True, check=True)
        report = subprocess.run(
            ["perf", "report", "-i", data, "--stdio", "--no-children", "-g", "none", "--percent-limit", "0",
             "-F", "overhead,symbol"], capture_output=True, text=True, check=True).stdout
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    shares, rest = collections.Counter(), []
    for line in report.splitlines():
        found = re.match(r"\s*([\d.]+)%\s+(.*\S)", line)
        if not found:
            continue
        share, symbol = float(found[1]), found[2]
        group = next((name for name, pattern in GROUPS if re.search(pattern, symbol)), "other")
        shares[group] += share
        if group == "other":
            rest.append((share, symbol))
    steps = sum(shares.values()) - shares.pop("start", 0)
    names = [name for name, _ in GROUPS if name != "start"] + ["other"]
    print("| kernels | share of the peak | " + " | ".join(names) + " |")
    print("|" + "---|" * (len(names) + 2))
    cells = " | ".join(f"{100 * shares[name] / steps:.1f} %" for name in names)
    print(f"| {options.isa or 'the best'} | {figures['share_of_fma']:.2f} | {cells} |")
    print("other:", "; ".join(f"{100 * share / steps:.1f} % {symbol}" for share, symbol in sorted(rest, reverse=True)[:8]))


if __name__ == "__main__":
    main()
