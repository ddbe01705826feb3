#!/usr/bin/env python3
"""The wheel and the tarball on bare Debian 12 and 13: installed, trained with, removed.

    bare_system_test.py BUILD

Packs by `./dev package`, in whole, and types the commands of docs/install.md. Prints how long
the way from the wheel to the first update took; torch is fetched and unpacked apart from that."""
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

import bare

if pathlib.Path(sys.argv.pop(1)).resolve() != bare.ROOT / "build":
    print("SKIPPED [1] `./dev package` packs the release build alone")
    sys.exit(bare.SKIPPED)
RECORD = r"^(estimator\.group_norm|sft\.plain)$"


def setUpModule():
    global INDEX
    INDEX = pathlib.Path(tempfile.mkdtemp(prefix="troupe-index-"))
    bare.must([bare.ROOT / "dev", "package", INDEX])


def tearDownModule():
    shutil.rmtree(INDEX)


def page_of(heading):
    """The commands of a section of docs/install.md, as a person types them."""
    text = (bare.ROOT / "docs/install.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]


class Bare(unittest.TestCase):
    suite = packages = None
    home = "/root/a home with blanks"

    def setUp(self):
        self.system = bare.BareSystem(self.suite, self.packages)
        self.addCleanup(self.system.close)
        self.system.show(INDEX, "/work/dist")
        for folder in ("/torch", self.home):
            self.inside(folder).mkdir()
        self.before = self.system.files()

    def inside(self, path):
        return self.system.root / path.lstrip("/")

    def types(self, status, lines, *texts, first=(), **environment):
        """Types lines into a shell, in /work; the last one ends with that status and all of it has these texts."""
        script = "\n".join(["set -e", "cd /work", *first, *([lines] if isinstance(lines, str) else lines)])
        found, output = self.system.run("sh", "-c", script, HOME=self.home, **environment)
        self.assertEqual(found, status, f"{script}\n{output}")
        for text in texts:
            self.assertIn(text, output)
        return output

    def learned(self):
        self.assertEqual(len(self.inside("/work/runs/first/metrics.jsonl").read_text().splitlines()), 1)

    def check_what_is_left(self):
        """Nothing but TROUPE_HOME and what the user made."""
        found = sorted(name for name in self.system.files() - self.before if not name.startswith("/work/"))
        cache = f"{self.home}/.cache"
        strange = [name for name in found if name != cache and not (name + "/").startswith(f"{cache}/troupe/")]
        self.assertEqual(strange, [])
        return found


class WheelOn(Bare):
    packages = ("python3", "python3-venv")

    def test_from_pip_to_the_first_update_and_away(self):
        system, env = self.system, f"{self.home}/troupe"
        system.show(bare.torch_wheels(bare.PYTHONS[self.suite]), "/torch")
        lines = page_of("With pip")
        self.assertEqual(lines[-1], "troupe doctor --install-torch --yes")
        begin = time.monotonic()
        self.types(0, lines[:-1], "troupe 0.", PIP_NO_INDEX="1")
        installed = time.monotonic() - begin
        active, train = lines[1:2], page_of("First update")
        # Without LibTorch, and with one of another version: what is needed, what is there, what to do.
        self.types(3, train, "training needs LibTorch 2.11 or 2.15, and there is none (", "troupe doctor --install-torch",
                   first=active)
        packages = f"{env}/lib/python{bare.PYTHONS[self.suite]}/site-packages"
        other = self.inside(f"{packages}/torch")
        (other / "lib").mkdir(parents=True)
        (other / "lib/libtorch_cpu.so").write_text("")
        (other / "__init__.py").write_text("")
        (other / "version.py").write_text("__version__ = '2.13.0+cu130'\n")
        self.types(3, train[-1], "training needs LibTorch 2.11 or 2.15, and there is none of that version (",
                   f"{packages}/torch is LibTorch 2.13.0+cu130", first=active)
        shutil.rmtree(other)
        self.types(2, "troupe doctor --install-torch", "nobody is there to answer", "--yes", first=active)
        # pip that finds nothing leaves nothing.
        self.types(3, lines[-1], "pip could not install torch==2.11.0", "PIP_INDEX_URL", first=active,
                   PIP_NO_INDEX="1")
        self.assertEqual(list(self.inside(self.home).glob(".cache/troupe/torch/*")), [])
        where = f"{self.home}/.cache/troupe/torch/2.11.0"
        self.types(0, lines[-1], f"is in {where}/torch/lib", f"`rm -r '{where}'` removes it", first=active,
                   PIP_NO_INDEX="1", PIP_FIND_LINKS="/torch")
        self.assertLess(sum(path.stat().st_size for path in self.inside(where).rglob("*") if path.is_file()), 550e6)
        self.types(0, "troupe doctor --install-torch", "nothing is installed", first=active)
        self.types(0, "troupe doctor", f"home        {self.home}/.cache/troupe,", first=active)
        shutil.rmtree(self.inside("/work/task"), ignore_errors=True)
        shutil.rmtree(self.inside("/work/model"), ignore_errors=True)
        begin = time.monotonic()
        self.types(0, train, first=active)
        print(f"{self.suite}: {installed:.1f} s to install, {time.monotonic() - begin:.1f} s to the first update",
              file=sys.stderr)
        self.learned()
        # The bits of the build, also with the newest LibTorch.
        system.show(next(bare.ROOT.glob(".venv/newest/lib/python3*/site-packages")).resolve(), "/newest")
        for folder in ("tests/record", "configs", "docs/examples"):
            shutil.copytree(bare.ROOT / folder, self.inside(f"/work/source/{folder}"))
        program = self.inside("/work/troupe")  # the record's own TROUPE_HOME has no LibTorch
        for torch, version in ((f"{where}/torch", "2.11.0"), ("/newest/torch", "2.15.0")):
            program.write_text(f"#!/bin/sh\nTROUPE_TORCH='{torch}' exec '{env}/bin/troupe' \"$@\"\n")
            program.chmod(0o755)
            self.types(0, "/work/troupe doctor", f"libtorch    {version}", first=active)
            self.types(0, f"python3 -B source/tests/record/record.py --troupe /work/troupe --only '{RECORD}'",
                       "2 runs", first=active)
        self.types(0, page_of("Remove")[0], first=active)
        self.assertEqual(list(self.inside(env).glob("**/*troupe*")), [])
        shutil.rmtree(self.inside(env))
        self.assertIn(f"{self.home}/.cache/troupe", self.check_what_is_left())
        self.types(0, page_of("Remove")[1])
        self.assertNotIn(f"{self.home}/.cache/troupe", self.check_what_is_left())


class TarballOn(Bare):
    packages = ()

    def test_without_python(self):
        self.assertFalse(self.inside("/usr/bin/python3").exists())
        self.system.show(next(bare.ROOT.glob(".venv/build/lib/python3*/site-packages")).resolve(), "/torch")
        lines = page_of("Without pip")
        self.types(0, lines, "troupe 0.")
        active = lines[2:3]
        self.types(3, "troupe doctor --install-torch --yes", "`python3 -m venv` failed",
                   "apt-get install python3-venv", first=active)
        self.types(0, page_of("First update"), first=active, TROUPE_TORCH="/torch/torch")
        self.learned()
        self.types(0, "troupe generate --model runs/first --prompt 1+1= --max-new-tokens 2", first=active)
        self.types(0, "troupe bench --help", first=active)
        self.types(0, "mv ~/opt ~/elsewhere && ~/elsewhere/troupe-*/bin/troupe --version && rm -r ~/elsewhere",
                   "troupe 0.")
        self.check_what_is_left()


class WheelOnDebian12(WheelOn):
    suite = "bookworm"


class WheelOnDebian13(WheelOn):
    suite = "trixie"


class TarballOnDebian12(TarballOn):
    suite = "bookworm"


class TarballOnDebian13(TarballOn):
    suite = "trixie"


del Bare, WheelOn, TarballOn

if __name__ == "__main__":
    if why := bare.why_not():
        print(f"SKIPPED [1] {why}")
        sys.exit(bare.SKIPPED)
    unittest.main(verbosity=2)
