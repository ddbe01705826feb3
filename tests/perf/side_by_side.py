#!/usr/bin/env python3
"""Generation beside its peers: `troupe bench generate` and scripts that run llama.cpp and transformers,
in turn, round after round, on the same threads; medians and ratios as a table and as JSON. Run by hand
on a quiet machine. A peer script prints one JSON line with results.B<batch>.{decode_tok_s,
prefill_tok_s}.median; --peer-scripts names the folder with llamacpp_generate.py and hf_generate.py.

  side_by_side.py --model DIR --peer-python peers/bin/python --peer-scripts DIR \\
      --gguf f32=M.f32.gguf --gguf bf16=M.bf16.gguf --pair f32:f32 --pair bf16:bf16
"""
import argparse
import json
import statistics
import subprocess
import sys


def last_json(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Ours:
    def __init__(self, args, dtype):
        self.args, self.dtype, self.name = args, dtype, f"troupe {dtype}"

    def run(self, batch):
        a = self.args
        row = last_json([a.troupe, "bench", "generate", "--json", "--model", a.model, "--dtype", self.dtype,
                         "--batch", str(batch), "--prompt-tokens", str(a.prompt), "--new-tokens", str(a.new),
                         "--threads", str(a.threads)])
        return row["decode_tokens_per_s"], row["prefill_tokens_per_s"], row["share_of_limit"]


class Peer:
    def __init__(self, args, kind):
        self.args, self.kind = args, kind
        self.name = f"transformers {kind[3:] or 'f32'}" if kind.startswith("hf") else f"llama.cpp {kind}"

    def run(self, batch):
        a = self.args
        if self.kind.startswith("hf"):
            dtype = {"hf": "float32", "hf-bf16": "bfloat16"}[self.kind]
            script = ["hf_generate.py", "--model", a.model, "--dtype", dtype]
        else:
            script = ["llamacpp_generate.py", "--gguf", a.ggufs[self.kind]]
        row = last_json([a.peer_python, f"{a.peer_scripts}/{script[0]}", *script[1:], "--batch", str(batch),
                         "--prompt", str(a.prompt), "--new", str(a.new), "--threads", str(a.threads),
                         "--reps", "1", "--max-foreign", "99"])["results"][f"B{batch}"]
        return row["decode_tok_s"]["median"], row["prefill_tok_s"]["median"], None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--troupe", default="build/troupe")
    p.add_argument("--model", required=True)
    p.add_argument("--peer-python", required=True)
    p.add_argument("--peer-scripts", required=True)
    p.add_argument("--gguf", action="append", default=[], metavar="TYPE=FILE")
    p.add_argument("--pair", action="append", required=True, metavar="DTYPE:PEER",
                   help="our dtype and a gguf type, or hf (f32) or hf-bf16 for transformers")
    p.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
    p.add_argument("--prompt", type=int, default=64)
    p.add_argument("--new", type=int, default=128)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    args = p.parse_args()
    args.ggufs = dict(word.split("=", 1) for word in args.gguf)
    print("| batch | ours | peer | decode: ours, peer, ratio | prefill: ours, peer, ratio | share of limit |\n"
          "|---|---|---|---|---|---|", flush=True)
    out = []
    for pair in args.pair:
        dtype, kind = pair.split(":")
        sides = [Ours(args, dtype), Peer(args, kind)]
        for batch in args.batch:
            seen = [[], []]
            for _ in range(args.rounds):
                for side, rows in zip(sides, seen):
                    rows.append(side.run(batch))
            ours, peer = ([statistics.median(column) for column in zip(*[row[:2] for row in rows])] for rows in seen)
            share = statistics.median(row[2] for row in seen[0])
            out.append({"batch": batch, "ours": sides[0].name, "peer": sides[1].name, "decode": [ours[0], peer[0]],
                        "prefill": [ours[1], peer[1]], "share_of_limit": share, "rounds": seen})
            print(f"| {batch} | {sides[0].name} | {sides[1].name} "
                  f"| {ours[0]:.1f}, {peer[0]:.1f}, {ours[0] / peer[0]:.2f} "
                  f"| {ours[1]:.0f}, {peer[1]:.0f}, {ours[1] / peer[1]:.2f} | {share:.2f} |", flush=True)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
