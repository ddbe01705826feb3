#!/usr/bin/env bash
# run.sh MODEL_DIR [ARG..]: the main job, as `./dev demo` starts it once binary and model are there.
#
# Trains the small model by GRPO on one-digit sums and differences; ARGs are flags of `troupe train
# ppo` and win over the recipe's keys.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
model=$1
shift
exec "$root/build/troupe" train ppo "$root/configs/demo_arithmetic.yaml" \
  --actor.model_name_or_path "$model" "$@"
