#!/usr/bin/env python3
"""The tarball and the wheel that `./dev package` makes of a build.

    package_test.py BUILD

Oracles: auditwheel for the tag, pip for the wheel, `cargo tree` and dpkg for the list of what is bundled, the record
for what the packaged program computes. Exit status 77: the build has no guide library, so nothing can be packed."""
import base64
import csv
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
NEWEST = BUILD / "libtroupe_learn_torch2.15.so"
TAG = "manylinux_2_35_x86_64"
SYSTEM = re.compile(r"^(linux-vdso|/lib64/ld-linux|lib(c|m|dl|rt|pthread)\.so|libstdc\+\+|libgcc_s)")


def run(words, **options):
    return subprocess.run([str(word) for word in words], text=True, capture_output=True, check=False, timeout=600,
                          **options)


def pack(kind, folder, *words, **changes):
    return run([sys.executable, "-B", ROOT / "apps/package/main.py", "--level", "1", kind, BUILD, folder, *words],
               env={**os.environ, **changes})


def only(folder, pattern):
    found = list(folder.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def setUpModule():
    global SCRATCH, ONE
    SCRATCH = tempfile.TemporaryDirectory(prefix="a package with blanks ")
    ONE = pathlib.Path(SCRATCH.name, "one")
    for kind in ("tarball", "wheel"):
        done = pack(kind, ONE, SOURCE_DATE_EPOCH="1700000000")
        assert done.returncode == 0, done.stderr


def tearDownModule():
    SCRATCH.cleanup()


class Packed(unittest.TestCase):
    """Each kind is packed twice: as another user of another zone would, too."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(SCRATCH.name)
        os.mkdir(cls.folder / "tmp")
        for kind in ("tarball", "wheel"):
            before = os.umask(0o077)
            done = pack(kind, cls.folder / "two", SOURCE_DATE_EPOCH="1700000000", TZ="Asia/Tokyo", LC_ALL="C",
                        TMPDIR=str(cls.folder / "tmp"), PYTHONHASHSEED="7")
            os.umask(before)
            assert done.returncode == 0, done.stderr
        cls.tarball = only(cls.folder / "one", "*.tar.gz")
        cls.wheel = only(cls.folder / "one", "*.whl")
        with tarfile.open(cls.tarball) as tar:
            tar.extractall(cls.folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        cls.tree = only(cls.folder, "troupe-*-linux-x86_64")

    def test_two_runs_give_the_same_bytes(self):
        names = sorted(path.name for path in (self.folder / "one").iterdir())
        self.assertEqual(len(names), 2)
        for name in names:
            one, two = ((self.folder / run / name).read_bytes() for run in ("one", "two"))
            self.assertTrue(one == two, name)

    def test_archives_keep_nothing_of_the_machine(self):
        with tarfile.open(self.tarball) as tar:
            members = tar.getmembers()
        names = [member.name for member in members]
        self.assertEqual(names, sorted(names))
        facts = {(member.uid, member.gid, member.uname, member.mtime, oct(member.mode)) for member in members}
        self.assertEqual(facts, {(0, 0, "root", 1700000000, mode) for mode in ("0o644", "0o755")})
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertEqual({entry.date_time for entry in archive.infolist()}, {(2023, 11, 14, 22, 13, 20)})

    def test_libraries_are_its_own_wherever_it_lies(self):
        for path in [self.tree / "bin/troupe", *(self.tree / "lib").iterdir()]:
            path = path.resolve()
            if path.name.startswith("libtroupe_learn"):  # LibTorch is loaded before it
                continue
            listed = run(["ldd", path], env={"PATH": "/usr/bin:/bin"})
            for line in listed.stdout.splitlines():
                name, _, rest = line.strip().partition(" => ")
                if SYSTEM.match(name):
                    continue
                found = pathlib.Path(rest.rpartition(" (")[0]).resolve()
                self.assertEqual(found.parent, (self.tree / "lib").resolve(), f"{path}: {line}")
        shown = run([self.tree / "bin/troupe", "--version"], env={"PATH": "/usr/bin:/bin"})
        self.assertEqual((shown.returncode, shown.stdout), (0, run([BUILD / "troupe", "--version"]).stdout))

    def test_the_packaged_program_computes_the_record(self):
        """Its bits are those of the build, in one process and over several."""
        rows = r"^(estimator\.group_norm|sft\.plain)$"
        done = run([sys.executable, "-B", ROOT / "tests/record/record.py", "--troupe", self.tree / "bin/troupe",
                    "--only", rows])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_record_of_the_wheel(self):
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            record = next(name for name in names if name.endswith(".dist-info/RECORD"))
            rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(names))
            for name, digest, size in rows:
                if name == record:
                    self.assertEqual((digest, size), ("", ""))
                    continue
                content = archive.read(name)
                wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={wanted}", str(len(content))), name)

    def test_auditwheel_finds_the_tag(self):
        done = run([ROOT / ".venv/package/bin/python", "-m", "auditwheel", "show", "--json", self.wheel])
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["sym_tag"], TAG)
        self.assertTrue(self.wheel.name.endswith(f"-py3-none-{TAG}.whl"))
        # LibTorch is the user's own; nothing else is missing.
        self.assertEqual(found["policy_upgrades"][TAG], {"libs_to_eliminate": ["libc10.so", "libtorch_cpu.so"]})
        self.assertIn("GLIBCXX_3.4.30", found["versioned_symbols"]["libstdc++.so.6"])

    def test_what_is_bundled_is_listed_with_its_licence(self):
        docs = self.tree / "share/doc/troupe"
        sbom = json.loads((docs / "sbom.spdx.json").read_text())
        self.assertEqual(sbom["spdxVersion"], "SPDX-2.3")
        listed = {(one["externalRefs"][0]["referenceLocator"].split("/")[0], one["name"]): one["versionInfo"]
                  for one in sbom["packages"] if one["name"] != "troupe"}
        related = {one["relatedSpdxElement"] for one in sbom["relationships"]}
        self.assertEqual(related, {one["SPDXID"] for one in sbom["packages"]})
        for library in (self.tree / "lib").iterdir():
            if library.name.startswith("libtroupe_"):
                continue
            owner = run(["dpkg", "-S", f"*/{library.name}"]).stdout.split(":")[0]
            version = run(["dpkg-query", "-W", "-f", "${Version}", owner]).stdout
            self.assertEqual(listed.get(("pkg:deb", owner)), version, library.name)
            self.assertGreater(len((docs / f"licenses/debian/{owner}.txt").read_text()), 200)
        wanted = set()
        for manifest in ROOT.glob("runtime/*/rust/Cargo.toml"):
            tree = run(["cargo", "tree", "--locked", "--offline", "-e", "normal", "--prefix", "none", "--target",
                        "x86_64-unknown-linux-gnu", "--manifest-path", manifest])
            self.assertEqual(tree.returncode, 0, tree.stderr)
            for line in tree.stdout.splitlines():
                if " (/" not in line:  # not ours
                    name, version = line.split()[:2]
                    wanted.add((name, version.removeprefix("v")))
        found = {(one["name"], one["versionInfo"]) for one in sbom["packages"]
                 if one["SPDXID"].startswith("SPDXRef-cargo-")}
        # The list may name a few more: it joins the features that any crate asks for.
        self.assertEqual(wanted - found, set())
        self.assertLess(len(found - wanted), 10)
        self.assertGreater(len(wanted), 50)
        texts = (docs / "licenses/crates.txt").read_text()
        self.assertIn("Permission is hereby granted", texts)
        self.assertNotIn("NOASSERTION", {one["licenseDeclared"] for one in sbom["packages"]
                                         if one["SPDXID"].startswith("SPDXRef-cargo-")})


class Installed(unittest.TestCase):
    """The wheel in a Python environment whose path has blanks."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="an environment with blanks ")
        cls.folder = pathlib.Path(cls.scratch.name)
        done = run([sys.executable, "-m", "venv", cls.folder / "venv"])
        assert done.returncode == 0, done.stderr
        cls.bin = cls.folder / "venv/bin"
        cls.site = only(cls.folder, "venv/lib/python3*/site-packages")
        done = run([cls.bin / "python", "-m", "pip", "install", "--no-index", "--find-links", ONE, "troupe-rl"])
        assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def troupe(self, *words, **changes):
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder / "home"), **changes}
        return run([self.bin / "troupe", *words], env=environment)

    def test_three_ways_to_start_it(self):
        wanted = run([BUILD / "troupe", "--version"]).stdout
        for words in ([self.bin / "troupe"], [self.bin / "troupe-rl"], [self.bin / "python", "-m", "troupe"],
                      [self.bin / "python", "-m", "troupe_rl"]):
            self.assertEqual(run([*words, "--version"]).stdout, wanted, words)
        done = self.troupe("no-such-command")
        self.assertEqual(done.returncode, 2, done.stderr)

    def put_torch(self, version):
        """The real LibTorch, as a `torch` of this environment that says it is of that version."""
        real = only(ROOT, ".venv/build/lib/python3*/site-packages/torch").resolve()
        torch = self.site / "torch"
        torch.mkdir()
        self.addCleanup(shutil.rmtree, torch)
        os.symlink(real / "lib", torch / "lib")
        (torch / "__init__.py").write_text("raise ImportError('torch was imported')\n")
        (torch / "version.py").write_text(f"__version__ = '{version}'\n")
        return torch

    def libtorch_line(self, **changes):
        done = self.troupe("doctor", **changes)
        return next(line for line in done.stdout.splitlines() if line.startswith("libtorch "))

    def test_torch_of_the_same_environment(self):
        torch = self.put_torch("2.11.0+mine")
        self.assertIn(f"2.11.0+mine in {torch}/lib", self.libtorch_line())

    def test_torch_of_another_version(self):
        torch = self.put_torch("2.13.0+cu130")
        self.assertNotIn(str(torch), self.libtorch_line())  # the next place has one that fits
        named = self.libtorch_line(TROUPE_TORCH=str(torch))
        serve = "2.11 or 2.15" if NEWEST.is_file() else "2.11"
        self.assertIn(f"none: {torch} is LibTorch 2.13.0+cu130, this build needs {serve}", named)

    def test_the_newest_torch_has_a_library_of_its_own(self):
        if not NEWEST.is_file():
            self.skipTest(f"{NEWEST} is not built")
        torch = self.put_torch("2.15.0+mine")
        self.assertIn(f"2.15.0+mine in {torch}/lib", self.libtorch_line())
        library = only(self.site, f"troupe_rl/lib/{NEWEST.name}")
        library.rename(library.with_suffix(".away"))
        self.addCleanup(library.with_suffix(".away").rename, library)
        named = self.libtorch_line(TROUPE_TORCH=str(torch))
        self.assertIn("is LibTorch 2.15.0+mine, this build needs 2.11", named)

    def test_python_is_that_of_the_environment(self):
        rows = self.folder / "rows.jsonl"
        rows.write_text('{"prompt": "a", "response": "b"}\n')
        reward = self.folder / "reward.py"
        reward.write_text("import sys\ndef reward(completions, **kwargs):\n"
                          "    raise ValueError('runs in ' + sys.prefix)\n")
        done = self.troupe("score", "--data", rows, "--python", reward, "--out", self.folder / "out.jsonl")
        self.assertIn(f"runs in {self.folder / 'venv'}", done.stdout + done.stderr)

    def test_a_clash_is_said_at_import(self):
        other = self.site / "troupe-0.5.2.dist-info"
        other.mkdir()
        self.addCleanup(shutil.rmtree, other)
        (other / "METADATA").write_text("Metadata-Version: 2.1\nName: troupe\nVersion: 0.5.2\n")
        done = run([self.bin / "python", "-c", "import troupe"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError: two packages that use the name `troupe` are installed: troupe-rl ", done.stderr)
        self.assertIn(" and troupe 0.5.2, another project", done.stderr)
        done = self.troupe("--version")
        self.assertEqual(done.returncode, 0)
        self.assertIn("troupe: warning: two packages", done.stderr)

    def test_removal_leaves_nothing(self):
        before = sorted(path for path in self.site.iterdir() if path.name.startswith("troupe"))
        self.assertEqual(len(before), 3)
        run([self.bin / "python", "-c", "import troupe"])
        done = run([self.bin / "python", "-m", "pip", "uninstall", "--yes", "troupe-rl"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path for path in self.site.iterdir() if path.name.startswith("troupe")], [])
        self.assertEqual([path for path in self.bin.iterdir() if path.name.startswith("troupe")], [])
        done = run([self.bin / "python", "-m", "pip", "install", "--no-index", "--find-links", ONE, "troupe-rl"])
        self.assertEqual(done.returncode, 0, done.stderr)


class Pages(unittest.TestCase):
    def test_the_readme_says_what_the_install_page_says(self):
        """Whose commands are typed on bare systems; the door's kinds are those of this packing."""
        readme, page = (ROOT / "README.md").read_text(), (ROOT / "docs/install.md").read_text()
        lines = re.search(r"^    \./dev package .*\n(?:    (?!\./dev).*\n)*", readme, re.M)[0].splitlines()
        door, *rest = [command for line in lines for command in line.strip().split(" && ")]
        self.assertEqual(door, "./dev package wheel")
        self.assertIn("troupe doctor --install-torch", rest)
        lines = [one.strip() for one in page.splitlines() if one.startswith("    ")]
        for command in rest:
            self.assertTrue(any(one in (command, f"{command} --yes") for one in lines), command)
        done = run([ROOT / "dev", "package", "egg", self.id()])
        self.assertEqual(done.returncode, 2)
        self.assertIn("is no kind (tarball, wheel, gpu-check)", done.stderr)


class BadInputs(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def expect(self, done, status, *texts):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def main(self, *words, **changes):
        return run([sys.executable, "-B", ROOT / "apps/package/main.py", "--level", "1", *words],
                   env={**os.environ, **changes})

    def test_each_is_named(self):
        out = self.folder / "out"
        self.expect(self.main("egg", BUILD, out), 2, "invalid choice: 'egg'")
        self.expect(self.main("wheel", self.folder, out), 1, f"there is no {self.folder}/troupe", "`./dev package`")
        self.expect(self.main("wheel", BUILD, out, "test_core"), 2, "a wheel has no test programs")
        self.expect(self.main("wheel", BUILD, out, SOURCE_DATE_EPOCH="yesterday"), 1,
                    "SOURCE_DATE_EPOCH is 'yesterday', not a number of seconds")
        self.expect(self.main("wheel", BUILD, out, "--patchelf", "/nowhere/patchelf"), 1,
                    "there is no /nowhere/patchelf")
        self.expect(self.main("wheel", BUILD, out, "--cuda", "/nowhere/libtroupe_cuda.so"), 1,
                    "there is no /nowhere/libtroupe_cuda.so")
        library = "/nowhere/libtroupe_cuda12.so"
        self.expect(self.main("wheel", BUILD, out, "--cuda", library), 1, f"there is no {library}")
        self.expect(self.main("wheel", BUILD, out, "--cuda", library, "--cuda", library), 2,
                    "--cuda has libtroupe_cuda12.so twice")
        self.expect(self.main("wheel", BUILD, out, "--cuda", "/nowhere/libcuda.so"), 2,
                    "/nowhere/libcuda.so is none of libtroupe_cuda.so, libtroupe_cuda12.so")
        self.expect(self.main("gpu-check", BUILD, out, "--cuda", library, "--cuda", "/nowhere/libtroupe_cuda.so"), 2,
                    "a gpu-check folder checks one library for GPUs")
        self.expect(self.main("wheel", BUILD, out, CARGO="/nowhere/cargo"), 1, "there is no /nowhere/cargo")
        (self.folder / "file").write_text("")
        self.expect(self.main("wheel", BUILD, self.folder / "file"), 1, f"{self.folder}/file")
        self.expect(self.main("gpu-check", BUILD, self.folder), 1, f"{self.folder} is not empty and no older package")
        self.assertTrue((self.folder / "file").exists())
        self.assertFalse(out.exists() and any(out.iterdir()))

    def test_a_wheel_above_its_limit(self):
        self.expect(self.main("wheel", BUILD, self.folder / "out", "--limit-mib", "2"), 1, "more than 2 MiB")
        self.assertEqual(list(self.folder.rglob("*.whl*")), [])


if __name__ == "__main__":
    if not (BUILD / "libtroupe_guide.so").is_file():
        print(f"SKIPPED [1] {BUILD}/libtroupe_guide.so is not built")
        sys.exit(77)
    unittest.main(verbosity=2)
