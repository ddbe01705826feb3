#!/usr/bin/env python3
"""One commit in two folders gives the same bytes: the objects with their debug information, static libraries, and the
tokenizer's crate. Compiled without a cache, so only a part of the program: rooms at the bottom and one of the apps' rooms,
generated messages, and a unit that includes LibTorch.

    two_folders_test.py BUILD"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import bare

TARGETS = ("troupe_core", "troupe_parse", "troupe_names", "troupe_text_rust_cargo", "schema/libtroupe_schema.a",
           "apps/cli/CMakeFiles/troupe_cli.dir/Unity/unity_0_cxx.cxx.o",
           "runtime/learn/CMakeFiles/troupe_learn_torch.dir/Unity/unity_0_cxx.cxx.o")
TOOLS = bare.ROOT / ".venv/build/bin"


def built_in(folder):
    """Relative name -> content of what the build of a copy of the checkout made."""
    for name in subprocess.run(["git", "ls-files", "-z"], cwd=bare.ROOT, check=True, text=True,
                               capture_output=True).stdout.split("\0"):
        if name and (bare.ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(bare.ROOT / name, folder / name)
    (folder / ".venv").mkdir()
    (folder / ".venv/build").symlink_to((bare.ROOT / ".venv/build").resolve())
    environment = {**os.environ, "CCACHE_DISABLE": "1", "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    bare.must([TOOLS / "cmake", "--preset", "release"], cwd=folder, env=environment)
    bare.must([TOOLS / "ninja", "-C", "build", *TARGETS], cwd=folder, env=environment)
    build = folder / "build"
    files = [*build.rglob("*.o"), *build.rglob("*.a")]
    names = {path.relative_to(build).as_posix(): path for path in files}
    return {name: path.read_bytes() for name, path in names.items()
            if not name.startswith(("cargo/release/build", "cargo/release/deps", "CMakeFiles/"))}


class TwoFolders(unittest.TestCase):
    def test_the_same_bytes(self):
        with tempfile.TemporaryDirectory(prefix="troupe-folders-") as scratch:
            one = built_in(pathlib.Path(scratch, "one"))
            other = built_in(pathlib.Path(scratch, "another-folder-with-a-longer-name"))
        self.assertEqual(sorted(one), sorted(other))
        self.assertGreater(len(one), len(TARGETS))
        self.assertIn("cargo/release/libtroupe_text.a", one)
        self.assertEqual([name for name in sorted(one) if one[name] != other[name]], [])


if __name__ == "__main__":
    if not (bare.ROOT / ".git").exists() or not shutil.which("git"):
        print("SKIPPED [1] a copy of the checkout is made by git's list of its files")
        sys.exit(bare.SKIPPED)
    sys.argv = sys.argv[:1]
    unittest.main(verbosity=2)
