"""Bare Debian systems: debootstrap's minimal variant, kept as tars under TROUPE_HOME/bases, unpacked into a scratch
folder and entered by chroot in namespaces of their own. Root only."""
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(os.environ.get("TROUPE_HOME") or pathlib.Path.home() / ".cache/troupe")
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}
SKIPPED = 77


def why_not(*tools):
    """Why no bare system can be made here; '' if one can."""
    if os.geteuid() != 0:
        return "only root makes a bare system"
    missing = [name for name in ("debootstrap", "chroot", "unshare", "ip", "tar", *tools) if not shutil.which(name)]
    return f"there is no {missing[0]}" if missing else ""


def must(words, **options):
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def base(suite, packages=()):
    """The tar of a bare system, with further Debian packages; made once."""
    name = "-".join([suite, *packages])
    tar = HOME / "bases" / f"{name}.tar"
    if tar.is_file():
        return tar
    tar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tar.parent) as scratch:
        folder = pathlib.Path(scratch, "root")
        if packages:
            folder.mkdir()
            must(["tar", "-C", folder, "-xpf", base(suite)])
            shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
            must(["chroot", folder, "apt-get", "update", "-qq"])
            must(["chroot", folder, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-qq", "-y",
                  "--no-install-recommends", *packages])
        else:
            must(["debootstrap", "--variant=minbase", suite, folder])
        made = pathlib.Path(scratch, "base.tar")
        must(["tar", "-C", folder, "-cpf", made, "."])
        made.rename(tar)
    return tar


def torch_wheels(python):
    """A folder with the wheels of LibTorch for that Python, fetched once."""
    wanted = [line for line in (ROOT / "runtime/cmake/requirements/build.txt").read_text().splitlines()
              if line.startswith(("torch==", "nvidia-"))]
    folder = HOME / "wheels" / "-".join([f"python{python}", *(line.replace("==", "-") for line in wanted)])
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            must([ROOT / ".venv/build/bin/python", "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                  "--python-version", python, "--platform", "manylinux_2_28_x86_64", "--platform",
                  "manylinux_2_25_x86_64", "--platform", "manylinux2014_x86_64", "-d", f"{scratch}/wheels", *wanted])
            os.rename(f"{scratch}/wheels", folder)
    return folder


class BareSystem:
    def __init__(self, suite, packages=()):
        self.scratch = tempfile.TemporaryDirectory(prefix=f"troupe-{suite}-")
        self.root = pathlib.Path(self.scratch.name)
        must(["tar", "-C", self.root, "-xpf", base(suite, packages)])
        self.mounts = []  # folder here, place there; read-only

    def close(self):
        self.scratch.cleanup()

    def show(self, folder, place):
        """Shows a folder of this machine there."""
        (self.root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
        self.mounts.append((folder, place))

    def run(self, *words, **environment):
        """Status and output of a command that sees no other process and no network but its own."""
        lines = ["set -e", "ip link set lo up", 'mount -t proc proc "$R/proc"', 'mount -t tmpfs tmpfs "$R/dev/shm"']
        for number, (folder, place) in enumerate(self.mounts):
            lines += [f'mount --bind "$M{number}" "$R{place}"', f'mount -o remount,bind,ro "$R{place}"']
        lines.append('exec chroot "$R" env -i "$@"')
        variables = {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", **environment}
        done = subprocess.run(
            ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", "\n".join(lines), "sh",
             *(f"{name}={value}" for name, value in variables.items()), *(str(word) for word in words)],
            env={**os.environ, "R": str(self.root), **{f"M{i}": str(one[0]) for i, one in enumerate(self.mounts)}},
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def files(self):
        """Every file and folder of the system."""
        found = set()
        for folder, folders, files in os.walk(self.root):
            here = "/" + os.path.relpath(folder, self.root)
            if here.startswith(("/./proc", "/proc")):
                continue
            found.update(os.path.normpath(f"{here}/{name}") for name in folders + files)
        return found
