#!/usr/bin/env bash
# make.sh [--arch] BUILD OUT [PROGRAM..]: packs the program built in BUILD into the folder OUT, which runs on
# other machines (to train, they need LibTorch 2.11): bin/troupe, checks.tar.xz (the PROGRAMs of
# BUILD/bin, for gpu-check), lib/ (libtroupe_learn.so, libtroupe_cuda.so for all GPUs if BUILD has it,
# and every shared library they need except LibTorch's and the system's own), the launcher `troupe`
# and `gpu-check`. With --arch the CUDA library of BUILD itself, for the GPUs that it was built for.
# Replaces OUT. Fails above 60 MiB, with --arch above 54 MiB.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cuda=cuda_all/libtroupe_cuda.so limit_mib=60
if [[ $1 == --arch ]]; then
  cuda=libtroupe_cuda.so limit_mib=54
  shift
fi
build=$1 out=$2
shift 2

rm -rf "$out"
mkdir -p "$out/bin" "$out/lib"
strip -o "$out/bin/troupe" "$build/troupe"
strip -o "$out/lib/libtroupe_learn.so" "$build/libtroupe_learn.so"
if (($#)); then
  checks=$(mktemp -d)
  for program in "$@"; do
    strip -o "$checks/$program" "$build/bin/$program"
  done
  tar -C "$checks" -cJf "$out/checks.tar.xz" .
  rm -rf "$checks"
fi
if [[ -e $build/$cuda ]]; then
  strip -o "$out/lib/libtroupe_cuda.so" "$build/$cuda"
fi

# Libraries that are not packed: LibTorch with what it brings, and what every glibc system has.
readonly not_ours='^(libtorch|libc10|libgomp|libcud|libcupti|libnv|libshm|ld-linux|linux-vdso|libc\.|libm\.|libdl\.|librt\.|libpthread\.|libutil\.|libstdc\+\+|libgcc_s)'
for program in "$build/troupe" "${@/#/$build/bin/}"; do
  ldd "$program"
done | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u | while read -r name path; do
  [[ ${name} =~ $not_ours ]] || strip -o "$out/lib/$name" "$(readlink -f "$path")"
done

install -m 755 "$here/troupe.sh" "$out/troupe"
cp -r "$here/gpu_check" "$out/lib/gpu_check"
printf '#!/bin/sh\nexec python3 -B "$(dirname "$(readlink -f "$0")")/lib/gpu_check/main.py" "$@"\n' >"$out/gpu-check"
chmod 755 "$out/gpu-check"
size=$(du -sk --apparent-size "$out" | cut -f1)
echo "$out: $(((size + 1023) / 1024)) MiB"
((size <= limit_mib * 1024)) || {
  echo "more than $limit_mib MiB" >&2
  exit 1
}
