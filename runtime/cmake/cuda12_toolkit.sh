#!/usr/bin/env bash
# cuda12_toolkit.sh FOLDER: puts the compiler of CUDA 12.4 into FOLDER, which nothing is installed in otherwise.
#
# PyPI has no nvcc of CUDA 12, the non-free packages of Debian 13 have (1 GB to download, 0.1 GB kept). apt fetches
# them, with lists of its own, from the mirror that this system's apt uses, and checks their signatures; only what
# compiling needs is unpacked. FOLDER appears when it is complete; a complete one is left alone. Exit 0: it is there;
# 3: it cannot be had, with the reason on stderr.
set -euo pipefail

readonly packages=(nvidia-cuda-toolkit=12.4.131~12.4.1-2 nvidia-cuda-dev=12.4.127~12.4.1-2)
readonly keys=/usr/share/keyrings/debian-archive-keyring.gpg

out=$1

fail() {
  echo "cuda12: $*" >&2
  exit 3
}

[[ ! -e $out/.complete ]] || exit 0
for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null || fail "there is no $tool; the compiler of CUDA 12 comes from Debian's packages"
done
[[ -r $keys ]] || fail "there is no $keys; the package debian-archive-keyring has it"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sort -u | head -n 1)
[[ -n $mirror ]] || fail "apt knows no mirror of Debian here; run \`apt-get update\`"

mkdir -p "$(dirname "$out")"
rm -rf "$out".?????? # what an interrupted run left
scratch=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/apt/{lists,cache}/partial "$scratch"/{root,tree/bin,tree/lib,tree/nvvm}

# This system's own apt keeps its lists and its settings of proxies.
apt=(apt-get -qq -o Dir::State::Lists="$scratch/apt/lists" -o Dir::Cache="$scratch/apt/cache"
  -o Dir::Etc::sourcelist="$scratch/apt/sources.list" -o Dir::Etc::sourceparts=-
  -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User="$(id -un)")
echo "deb [signed-by=$keys] $mirror trixie non-free" >"$scratch/apt/sources.list"
log=$scratch/apt/log
"${apt[@]}" update >"$log" 2>&1 || fail "apt-get update of $mirror trixie non-free failed: $(tail -n 1 "$log")"
(cd "$scratch/apt" && "${apt[@]}" download "${packages[@]}") >"$log" 2>&1 ||
  fail "apt-get download ${packages[*]} failed: $(tail -n 1 "$log")"

unpack() { # package, names in it
  local package
  package=$(echo "$scratch/apt/$1"_*.deb)
  shift
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$scratch/root" --exclude='*.so*' "$@"
  rm "$package"
}
unpack nvidia-cuda-toolkit ./usr/bin/{ptxas,fatbinary,cudafe++,cuobjdump} \
  ./usr/lib/nvidia-cuda-toolkit/{bin,libdevice}
unpack nvidia-cuda-dev ./usr/include ./usr/lib/x86_64-linux-gnu/libcudart_static.a \
  ./usr/share/doc/nvidia-cuda-dev/copyright

# As the toolkit has them: nvcc finds the rest from its own place.
cd "$scratch/root/usr"
mv bin/* lib/nvidia-cuda-toolkit/bin/{nvcc,cicc,crt} "$scratch/tree/bin"
mv lib/nvidia-cuda-toolkit/libdevice "$scratch/tree/nvvm"
mv lib/x86_64-linux-gnu/libcudart_static.a "$scratch/tree/lib"
mv include "$scratch/tree"
mv share/doc/nvidia-cuda-dev/copyright "$scratch/tree/License.txt"
cat >"$scratch/tree/bin/nvcc.profile" <<'END'
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(_HERE_):
INCLUDES += "-I$(TOP)/include"
END
"$scratch/tree/bin/nvcc" --version >"$log" 2>&1 || fail "what was unpacked does not start: $(tail -n 1 "$log")"
echo "${packages[*]}" >"$scratch/tree/.complete"
rm -rf "$out"
mv -T "$scratch/tree" "$out"
