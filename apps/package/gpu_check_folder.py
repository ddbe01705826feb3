"""What the gpu-check folder has in addition: the launcher, the check itself and the test programs."""
import pathlib
import shutil
import tarfile
import tempfile

import elf

HERE = pathlib.Path(__file__).resolve().parent
CHECK = '#!/bin/sh\nexec python3 -B "$(dirname "$(readlink -f "$0")")/lib/gpu_check/main.py" "$@"\n'


def complete(folder, build, programs):
    if programs:
        pack_programs(folder / "checks.tar.xz", [build / "troupe-bench"] + [build / "bin" / name for name in programs])
    # gpu-check puts it back from the archive, beside the program.
    (folder / "bin" / "troupe-bench").unlink()
    for library in (folder / "lib").glob("libtroupe_learn_torch*.so"):  # the launcher takes 2.11 alone
        library.unlink()
    # The test programs' own libraries.
    for name, path in elf.libraries_to_pack([build / "bin" / name for name in programs]).items():
        if not (folder / "lib" / name).exists():
            elf.copy(path, folder / "lib" / name, None)
    shutil.copy(HERE / "troupe.sh", folder / "troupe")
    shutil.copytree(HERE / "gpu_check", folder / "lib" / "gpu_check", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "gpu-check").write_text(CHECK)
    for name in ("troupe", "gpu-check"):
        (folder / name).chmod(0o755)


def pack_programs(archive, programs):
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(archive, "w:xz") as tar:
        for program in programs:
            stripped = pathlib.Path(scratch, program.name)
            elf.copy(program, stripped, None)
            tar.add(stripped, program.name)
