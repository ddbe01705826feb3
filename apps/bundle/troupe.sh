#!/bin/sh
# Troupe beside a LibTorch of this machine: ./troupe [--torch DIR] COMMAND ...
#
# DIR is an unpacked LibTorch 2.11 or the folder `torch` of an installed PyTorch 2.11; without it
# TROUPE_TORCH, then what `python3 -c "import torch"` finds. Everything else is in this folder.
here=$(dirname "$(readlink -f "$0")")
say() {
  echo "troupe: $*" >&2
  exit 3
}
if [ "${1:-}" = --torch ]; then
  [ $# -ge 2 ] || say "--torch needs a folder"
  torch=$2
  shift 2
elif [ -n "${TROUPE_TORCH:-}" ]; then
  torch=$TROUPE_TORCH
else
  torch=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null) ||
    say "no LibTorch: give --torch DIR (or set TROUPE_TORCH), a LibTorch or PyTorch 2.11"
fi
[ -e "$torch/lib/libtorch_cpu.so" ] || say "$torch has no lib/libtorch_cpu.so; --torch names a LibTorch or PyTorch 2.11"
version=$(cat "$torch/build-version" 2>/dev/null || sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py" 2>/dev/null)
case $version in
2.11.*) ;;
*) say "$torch is LibTorch ${version:-of an unknown version}; this build needs 2.11" ;;
esac
export TROUPE_TORCH="$torch"
export LD_LIBRARY_PATH="$here/lib:$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "${TROUPE_PROGRAM:-$here/bin/troupe}" "$@"
