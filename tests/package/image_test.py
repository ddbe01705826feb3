#!/usr/bin/env python3
"""The images of apps/package/images, built by buildah on a bare Debian 12, and used.

    image_test.py BUILD"""
import os
import pathlib
import re
import shutil
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

    def build(self, name, wheels, *words):
        bare.must([sys.executable, "-B", bare.ROOT / "apps/package/main.py", "--level", "1", *words, "wheel", BUILD,
                   self.folder / name])
        self.buildah("bud", "-t", name, "--build-arg", "BASE=localhost/base", "--build-arg", f"WHEEL={name}",
                     "--build-arg", "PIP_NO_INDEX=1", "--build-arg", "PIP_FIND_LINKS=/wheels", "--volume",
                     f"{wheels}:/wheels:ro", "-f", str(IMAGES / f"Dockerfile.{name}"), ".")
        container = self.buildah("from", f"localhost/{name}").strip().splitlines()[-1]
        self.addCleanup(self.buildah, "rm", container)
        return lambda *command: self.buildah("run", container, "--", "troupe", *command)

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
        library = next((path for path in (BUILD / "cuda_all/libtroupe_cuda.so", BUILD / "libtroupe_cuda.so")
                        if path.is_file()), None)
        if library is None:
            self.skipTest("no libtroupe_cuda.so in the build")
        nccl = next(line for line in (bare.ROOT / "runtime/cmake/requirements/cuda.txt").read_text().splitlines()
                    if line.startswith("nvidia-nccl"))
        self.assertIn(nccl, (IMAGES / "Dockerfile.cuda").read_text())
        wheels = self.folder / "wheels"
        shutil.copytree(self.wheels, wheels)
        bare.must([bare.ROOT / ".venv/build/bin/python", "-m", "pip", "download", "-q", "--no-deps", "-d", wheels,
                   nccl])
        doctor = self.build("cuda", wheels, "--cuda", library)("doctor")
        self.assertIn("2.11.0", re.search(r"^libtorch .*$", doctor, re.MULTILINE).group(0))
        # The library is there; what is missing is the driver, which comes from the host.
        self.assertRegex(doctor, r"(?m)^gpu +none: .*driver")


if __name__ == "__main__":
    if why := bare.why_not("buildah"):
        print(f"SKIPPED [1] {why}")
        sys.exit(bare.SKIPPED)
    unittest.main(verbosity=2)
