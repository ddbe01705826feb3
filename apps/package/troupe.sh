#!/bin/sh
# Runs the Troupe of this folder with a LibTorch of the machine: ./troupe [--torch DIR] COMMAND ...
#
# DIR is an unpacked LibTorch 2.11 or the folder `torch` of an installed PyTorch 2.11. Without
# --torch the launcher takes the folder in TROUPE_TORCH, else the one that `python3 -c "import torch"`
# finds. Without any of them the program does everything except training.
here=$(dirname "$(readlink -f "$0")")
say() {
  echo "troupe: $*" >&2
  exit 3
}
# Prints why the folder is no LibTorch 2.11; prints nothing when it is one.
misfit() {
  [ -e "$1/lib/libtorch_cpu.so" ] || {
    echo "$1 has no lib/libtorch_cpu.so; --torch names a LibTorch or PyTorch 2.11"
    return
  }
  version=$(cat "$1/build-version" 2>/dev/null || sed -n "s/^__version__ = '\(.*\)'/\1/p" "$1/version.py" 2>/dev/null)
  case $version in
  2.11.*) ;;
  *) echo "$1 is LibTorch ${version:-of an unknown version}; this build needs 2.11" ;;
  esac
}
if [ "${1:-}" = --torch ]; then
  [ $# -ge 2 ] || say "--torch needs a folder"
  TROUPE_TORCH=$2
  shift 2
fi
if [ -n "${TROUPE_TORCH:-}" ]; then
  why=$(misfit "$TROUPE_TORCH")
  [ -z "$why" ] || say "$why"
else
  TROUPE_TORCH=$(python3 -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])' 2>/dev/null)
  [ -z "$(misfit "$TROUPE_TORCH")" ] || TROUPE_TORCH=
fi
export TROUPE_TORCH
export LD_LIBRARY_PATH="$here/lib${TROUPE_TORCH:+:$TROUPE_TORCH/lib}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
program=${TROUPE_PROGRAM:-$here/bin/troupe}
unset TROUPE_PROGRAM # what it starts through this launcher is `troupe`
exec "$program" "$@"
