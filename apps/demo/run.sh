#!/usr/bin/env bash
# run.sh MODEL_DIR [--sync] [ARG..]: runs the demo. `./dev demo` calls it when binary and model are ready.
#
# Writes the arithmetic task and trains the small model on it by GRPO, asynchronously: two generators
# go on sampling while the policy trains, each in a process of its own. During the run a second reward
# joins from another process and leaves again. With `--sync` training is synchronous: one generator
# takes turns with the policy. ARGs are flags of `troupe train ppo` and override the recipe's keys. Runs
# go under ${TROUPE_HOME:-~/.cache/troupe}/runs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
model=$1
shift
mode=()
if [[ ${1:-} == --sync ]]; then
  shift
  mode=(--train.staleness_max 0 --rollout.generators 1)
fi
home=${TROUPE_HOME:-$HOME/.cache/troupe}
data=$home/data/arithmetic
troupe=$root/build/troupe
"$troupe" data arithmetic --out "$data" --seed 1 --held-out 40
# A new folder each time: the demo shows a whole run, it does not resume one.
run=$home/runs/demo-$(date +%Y%m%d-%H%M%S)

updates_done() { grep -c '"policy/loss"' "$run/metrics.jsonl" 2>/dev/null || true; }

wait_for_update() { # N: waits until N updates are done; fails when the run has ended before
  while [[ $(updates_done) -lt $1 ]]; do
    kill -0 "$run_pid" 2>/dev/null || return 1
    sleep 0.2
  done
}

# Attaches a second reward, for form alone (1 when the whole reply is one bare number), in a process of
# its own from update 10 to update 20. The run goes on meanwhile.
guest() {
  wait_for_update 10 || return 0
  "$troupe" attach reward --join "$run" --name format --rule regex \
    --pattern '^ ?-?[0-9]+\n?$' --weight 0.2 &
  wait_for_update 20 && "$troupe" detach reward --join "$run" --name format
  wait
}

run_pid=$BASHPID
mkdir -p "$run"
guest >"$run/guest.log" 2>&1 </dev/null &
guest_pid=$!
status=0
"$troupe" train ppo "$root/configs/demo_arithmetic.yaml" \
  --actor.model_name_or_path "$model" \
  --data.prompt_dataset "$data/train.jsonl" --eval.dataset "$data/heldout.jsonl" \
  --run.path "$run" ${mode[@]+"${mode[@]}"} "$@" || status=$?
kill "$guest_pid" 2>/dev/null || true
wait "$guest_pid" 2>/dev/null || true
if [[ -s $run/guest.log ]]; then
  printf '\nthe reward that came and went (%s):\n' "$run/guest.log"
  sed 's/^/  /' "$run/guest.log"
fi
exit "$status"
