"""What a binary needs, and copies of binaries for other machines: stripped, with run paths to what is packed."""
import os
import re
import shutil
import subprocess

from errors import PackageError

# What is not packed: the C and C++ runtimes, which are the system's since LibTorch shares them, and LibTorch with what
# it brings.
SYSTEM = re.compile(r"^(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|util|resolv|anl|mvec)\.so|libstdc\+\+|libgcc_s)")
TORCH = re.compile(r"^(libtorch|libc10|libgomp|libshm|libcud|libcupti|libnv)")

# Libraries for NVIDIA GPUs, for drivers of CUDA 13 and of CUDA 12 (kernels/cuda/library_choice.cpp).
FOR_GPUS = ("libtroupe_cuda.so", "libtroupe_cuda12.so")


def run(words):
    try:
        done = subprocess.run([str(word) for word in words], text=True, capture_output=True, check=False)
    except FileNotFoundError:
        raise PackageError(f"there is no {words[0]}; `./dev package` makes what packing needs") from None
    if done.returncode != 0:
        raise PackageError(f"{' '.join(str(word) for word in words)} failed: {done.stderr.strip()}")
    return done.stdout


def libraries_to_pack(binaries):
    """Name -> file of every shared library that the binaries need and that another machine may lack."""
    found = {}
    for binary in binaries:
        for line in run(["ldd", binary]).splitlines():
            if not (match := re.match(r"\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", line)):
                continue
            name, path = match.groups()
            if SYSTEM.match(name) or TORCH.match(name):
                continue
            if path == "not found":
                raise PackageError(f"{binary} needs {name}, which this machine does not have")
            found[name] = os.path.realpath(path)
    return dict(sorted(found.items()))


def copy(source, target, patchelf, run_path=None):
    """A stripped copy; its libraries are looked for in `run_path` first."""
    if not os.path.isfile(source):
        raise PackageError(f"there is no {source}; `./dev build` makes it")
    target.parent.mkdir(parents=True, exist_ok=True)
    run(["strip", "-o", target, source])
    if run_path is not None:
        run([patchelf, "--remove-rpath", target])
        run([patchelf, "--set-rpath", run_path, target])
    shutil.copymode(source, target)
    target.chmod(0o755)
