#!/usr/bin/env python3
"""The images of apps/package/images, built by buildah on a bare Debian 12, and used.

    image_test.py BUILD"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import bare

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
IMAGES = bare.ROOT / "apps/package/images"


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="troupe-images-")
        cls.folder = pathlib.Path(cls.scratch.name)
        shutil.copy(bare.base("bookworm"), cls.folder / "base.tar")
        (cls.folder / "Base").write_text("FROM scratch\nADD base.tar /\n")
        cls.buildah("bud", "-t", "base", "-f", "Base", ".")
        cls.wheels = bare.torch_wheels("3.11")

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def buildah(cls, *words):
        return bare.must(["buildah", "--root", cls.folder / "storage", "--runroot", cls.folder / "state", *words],
                         cwd=cls.folder, env={**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"})

    def build(self, name, wheels, packing=(), **arguments):
        bare.must([sys.executable, "-B", bare.ROOT / "apps/package/main.py", "--level", "1", *packing, "wheel", BUILD,
                   self.folder / name])
        arguments.update(BASE="localhost/base", WHEEL=name, PIP_NO_INDEX="1", PIP_FIND_LINKS="/wheels")
        self.buildah("bud", "-t", name, *(f"--build-arg={key}={value}" for key, value in arguments.items()),
                     "--volume", f"{wheels}:/wheels:ro", "-f", str(IMAGES / f"Dockerfile.{name}"), ".")
        container = self.buildah("from", f"localhost/{name}").strip().splitlines()[-1]
        self.addCleanup(self.buildah, "rm", container)
        return lambda *command: self.buildah("run", container, "--", "troupe", *command)

    def library(self):
        """A library for GPUs: one that was built, else that of the compiler which takes less time."""
        names = ("cuda_all/libtroupe_cuda.so", "libtroupe_cuda.so", "cuda_all/libtroupe_cuda12.so",
                 "libtroupe_cuda12.so")
        built = [BUILD / name for name in names if (BUILD / name).is_file()]
        if not built and BUILD == bare.ROOT / "build":
            done = subprocess.run([bare.ROOT / "dev", "build", "--cuda=12", "troupe_cuda12"], check=False)
            self.assertIn(done.returncode, (0, 3))  # 3: its compiler cannot be had here
            built = [BUILD / "libtroupe_cuda12.so"] if done.returncode == 0 else []
        if not built:
            self.skipTest("no library for GPUs in the build")
        return built[0]

    def test_for_processors(self):
        troupe = self.build("cpu", self.wheels)
        self.assertIn("2.11.0", re.search(r"^libtorch .*$", troupe("doctor"), re.MULTILINE).group(0))
        troupe("data", "arithmetic", "--out", "task")
        troupe("model", "random", "--shape", "tiny", "--out", "model")
        out = troupe("train", "ppo", "--actor.model_name_or_path", "model", "--data.prompt_dataset", "task/train.jsonl",
                     "--reward.rule", "exact", "--data.label_key", "answer", "--rollout.max_new_tokens", "4",
                     "--rollout.batch_size", "4", "--rollout.n_samples_per_prompt", "4", "--train.max_steps", "1",
                     "--run.path", "run")
        self.assertIn("1/1", out)

    def test_for_gpus(self):
        library = self.library()
        nccl = next(line for line in (bare.ROOT / "runtime/cmake/requirements/cuda.txt").read_text().splitlines()
                    if line.startswith("nvidia-nccl"))
        self.assertIn(f"ARG NCCL={nccl}\n", (IMAGES / "Dockerfile.cuda").read_text())
        if library.name == "libtroupe_cuda12.so":
            nccl = nccl.replace("-cu13", "-cu12")
            self.assertIn(nccl, (IMAGES / "Dockerfile.cuda").read_text())
        wheels = self.folder / "wheels"
        shutil.copytree(self.wheels, wheels)
        bare.must([bare.ROOT / ".venv/build/bin/python", "-m", "pip", "download", "-q", "--no-deps", "-d", wheels,
                   nccl])
        troupe = self.build("cuda", wheels, ["--cuda", library], NCCL=nccl)
        doctor = troupe("doctor")
        self.assertIn("2.11.0", re.search(r"^libtorch .*$", doctor, re.MULTILINE).group(0))
        # The library is there; what is missing is the driver, which comes from the host.
        self.assertRegex(doctor, r"(?m)^gpu +none: .*driver")


if __name__ == "__main__":
    if why := bare.why_not("buildah"):
        print(f"SKIPPED [1] {why}")
        sys.exit(bare.SKIPPED)
    unittest.main(verbosity=2)
