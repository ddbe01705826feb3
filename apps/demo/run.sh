#!/usr/bin/env bash
# run.sh MODEL_DIR [ARG..]: the main job, as `./dev demo` starts it once binary and model are there.
#
# Writes the arithmetic task and trains the small model on it by GRPO; ARGs are flags of `troupe train
# ppo` and win over the recipe's keys. Runs go under ${TROUPE_HOME:-~/.cache/troupe}/runs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
model=$1
shift
home=${TROUPE_HOME:-$HOME/.cache/troupe}
data=$home/data/arithmetic
"$root/build/troupe" data arithmetic --out "$data" --seed 1 --held-out 40
# A new folder each time: the demo shows a whole run, it does not resume one.
run=$home/runs/demo-$(date +%Y%m%d-%H%M%S)
exec "$root/build/troupe" train ppo "$root/configs/demo_arithmetic.yaml" \
  --actor.model_name_or_path "$model" \
  --data.prompt_dataset "$data/train.jsonl" --eval.dataset "$data/heldout.jsonl" \
  --run.path "$run" "$@"
