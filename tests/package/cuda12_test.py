#!/usr/bin/env python3
"""libtroupe_cuda12.so: nvcc of CUDA 12.4 compiles all kernels for all GPUs that it serves, and a driver of CUDA 12.0 is
enough for the result.

    cuda12_test.py BUILD

Oracles: cuobjdump for what is in the library; the CUDA runtime 12.0 of PyPI for what there was then; a driver that gives
what its version has (tests/cuda_driver)."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import bare

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
ARCHS = ("sm_80", "sm_86", "sm_89", "sm_90")
LIBRARY = BUILD / "cuda_all/libtroupe_cuda12.so"
RUNTIME = "nvidia-cuda-runtime-cu12==12.0.146"
STATE = "import ctypes, sys\n" \
        "class Entry(ctypes.Structure):\n" \
        "    _fields_ = [('abi', ctypes.c_int), ('count', ctypes.CFUNCTYPE(ctypes.c_int)),\n" \
        "                ('why', ctypes.CFUNCTYPE(ctypes.c_char_p))]\n" \
        "entry = Entry.in_dll(ctypes.CDLL(sys.argv[1]), 'troupe_cuda_entry')\n" \
        "print(entry.count(), entry.why().decode())\n"


def cuobjdump(*words):
    return bare.must([bare.ROOT / ".venv/cuda12/bin/cuobjdump", *words])


def runtime_of_12_0():
    """The names that the first runtime of CUDA 12 had."""
    with tempfile.TemporaryDirectory() as scratch:
        bare.must([bare.ROOT / ".venv/build/bin/python", "-m", "pip", "download", "-q", "--no-deps", "-d", scratch,
                   RUNTIME])
        with zipfile.ZipFile(next(pathlib.Path(scratch).glob("*.whl"))) as wheel:
            library = wheel.extract("nvidia/cuda_runtime/lib/libcudart.so.12", scratch)
        names = bare.must(["nm", "-D", "--defined-only", "--format=just-symbols", library]).split()
        return {name.split("@")[0] for name in names}


class Cuda12(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        bare.must([bare.ROOT / "dev", "build", "--cuda=12", "troupe_cuda12_all", "cuda_driver"])
        cls.objects = sorted((BUILD / "kernels/cuda").glob("troupe_cuda12_all.*.cu.o"))
        sources = {path.stem for path in (bare.ROOT / "kernels/cuda").glob("*.cu")}
        assert {path.name.split(".")[1] for path in cls.objects} == sources

    def test_each_gpu_has_code_of_each_kernel(self):
        kernels = collections.defaultdict(set)
        for line in cuobjdump("-symbols", LIBRARY).splitlines():
            if line.startswith("arch = "):
                arch = line.removeprefix("arch = ")
            elif "STO_ENTRY" in line:
                kernels[arch].add(line.split()[-1])
        self.assertEqual(sorted(kernels), sorted(ARCHS))
        # The host's side knows them by the same names.
        wanted = set(re.findall(r"\b_ZN6troupe\w+kernel\w*", bare.must(["strings", "-a", LIBRARY])))
        self.assertGreater(len(kernels["sm_90"]), 100)
        for arch in ARCHS:
            self.assertEqual(kernels[arch], kernels["sm_90"], arch)
            self.assertLessEqual(kernels[arch], wanted)
        # What newer GPUs compile when it is loaded.
        ptx = set(re.findall(r"\.(sm_\d+)\.ptx", cuobjdump("--list-ptx", LIBRARY)))
        self.assertEqual(ptx, {"sm_90"})

    def test_nothing_of_the_runtime_is_newer_than_12_0(self):
        there = runtime_of_12_0()
        wanted = set()
        for file in self.objects:
            names = bare.must(["nm", "-u", "--format=just-symbols", file]).split()
            wanted |= {name for name in names if re.match(r"_*cuda|cu[A-Z]", name)}
        self.assertIn("cudaGetDeviceProperties_v2", wanted)
        self.assertEqual(wanted - there, set())
        needed = re.findall(r"NEEDED.*\[(.+)\]", bare.must(["readelf", "-d", LIBRARY]))
        self.assertEqual([name for name in needed if "cuda" in name], [])
        undefined = bare.must(["nm", "-D", "-u", "--format=just-symbols", LIBRARY]).split()
        self.assertEqual([name for name in undefined if re.match(r"_*cu(da)?[A-Z]", name)], [])

    def test_a_driver_of_12_0_is_enough(self):
        def state(driver):
            done = subprocess.run([sys.executable, "-c", STATE, LIBRARY], text=True, capture_output=True, check=True,
                                  env={**os.environ, "LD_LIBRARY_PATH": str(BUILD / "cuda_driver"),
                                       "TROUPE_TEST_DRIVER": str(driver)})
            return done.stdout.strip()

        for driver in (12000, 12040, 13000):
            self.assertEqual(state(driver), "0 no CUDA-capable device is detected", driver)
        self.assertEqual(state(11080), "0 CUDA driver version is insufficient for CUDA runtime version")


if __name__ == "__main__":
    if BUILD != bare.ROOT / "build":
        print("SKIPPED [1] `./dev build --cuda=12` makes that of the release build alone")
        sys.exit(bare.SKIPPED)
    if not shutil.which("apt-get"):
        print("SKIPPED [1] the compiler of CUDA 12 comes from Debian's packages")
        sys.exit(bare.SKIPPED)
    unittest.main(verbosity=2)
