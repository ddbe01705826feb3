#!/usr/bin/env bash
# gpu-check [--torch DIR] [--model FOLDER] [--out FILE]: runs every test and measurement that needs a
# GPU, in at most nine minutes, and writes one JSON line for each to FILE (default gpu_check.json).
# First come tests of correctness (device kernels, engine and trainer against the CPU), then speed, as
# shares of limits measured in the same run. What does not finish in time counts as failed. Runs from a
# bundle, or by `./dev gpu-check` from a build. Exit: 0 all passed, 1 something failed, 3 no GPU.
set -uo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
readonly seconds_max=540
out=gpu_check.json model='' torch=()
while (($#)); do
  case $1 in
  --torch) torch=(--torch "$2") && shift ;;
  --model) model=$2 && shift ;;
  --out) out=$2 && shift ;;
  *)
    echo "usage: gpu-check [--torch DIR] [--model FOLDER] [--out FILE]" >&2
    exit 2
    ;;
  esac
  shift
done

run() { # PROGRAM ARG..: runs it by the bundle's launcher; kills it when the time is up
  local program=$1 left=$((seconds_max - SECONDS))
  shift
  ((left > 0)) || return 124
  TROUPE_PROGRAM=$program timeout -k 5 "$left" "$here/troupe" "${torch[@]}" "$@"
}
say() { echo "gpu-check: $*" >&2; }
line() { echo "$1" >>"$out"; }

: >"$out"
failed=0
if ! run "$here/bin/troupe" doctor --gpus --json >>"$out"; then
  say "no GPU to check; see \`troupe doctor\`"
  exit 3
fi

# Correctness. The test programs are packed to keep the bundle small.
checks=$(mktemp -d)
trap 'rm -rf "$checks"' EXIT
tar -C "$checks" -xzf "$here/checks.tar.gz" || exit 1
declare -A device_tests=([test_kernels_cuda]='*' [test_model]='*Device*' [test_engine]='*EngineOnDevice*'
  [test_learn]='*Device*' [test_weights]='DeviceChannel.*')
export TROUPE_CUDA_LIBRARY=${TROUPE_CUDA_LIBRARY:-$here/lib/libtroupe_cuda.so}
for test in test_kernels_cuda test_model test_engine test_learn test_weights; do
  began=$SECONDS
  run "$checks/$test" --gtest_brief=1 "--gtest_filter=${device_tests[$test]}" >"$out.$test.log" 2>&1
  rc=$?
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$out.$test.log" | tail -n 1)
  broken=$(sed -n 's/^\[  FAILED  \] \([^ ]*\) (.*/\1/p' "$out.$test.log" | sort -u | paste -sd ' ')
  line "{\"check\":\"$test\",\"exit\":$rc,\"passed\":${passed:-0},\"failed\":\"$broken\",\"seconds\":$((SECONDS - began))}"
  ((rc == 0 && ${passed:-0} > 0)) && continue
  failed=1
  say "$test: exit $rc: ${broken:-see $out.$test.log}"
done

# Speed.
measure() { # ARG..: runs `troupe bench` with these arguments
  local rc
  run "$here/bin/troupe" bench "$@" --json >>"$out" 2>"$out.log"
  rc=$?
  ((rc == 0)) && return
  failed=1
  line "{\"bench\":\"$1\",\"arguments\":\"$*\",\"exit\":$rc}"
  say "bench $*: exit $rc: $(tail -n 1 "$out.log")"
}
for dtype in f32 bf16 bf16-compute; do
  measure gemm --device cuda --dtype $dtype                    # the products of SmolLM2-135M
  measure gemm --device cuda --dtype $dtype --n 4096 --k 14336 # a product of an 8B model
  measure gemm --device cuda --dtype $dtype --n 9728 --k 896 --m 8192
done
if [[ -n $model ]]; then
  for batch in 1 8 64 256; do
    measure generate --device cuda --model "$model" --dtype bf16 --batch $batch
  done
  for batch in 1 64 256; do
    measure generate --device cuda --model "$model" --dtype bf16-compute --batch $batch
  done
  measure train --device cuda --model "$model" --objective grpo
  measure train --device cuda --model "$model" --objective sft --prompts 32 --micro-tokens-max 8192
fi
say "$(grep -c . "$out") lines in $out, $SECONDS seconds"
exit $failed
