"""What the tarball, the wheel and the gpu-check folder have in common: bin/, lib/ and share/doc/troupe/."""
import pathlib
import shutil

import elf
from errors import PackageError
from inventory import Inventory

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("troupe", "troupe-bench")
# Of our libraries, those without which a package is not whole. A gpu-check folder does without all but the first, whose
# crates a machine may not be able to fetch.
REQUIRED = ("libtroupe_learn.so", "libtroupe_guide.so", "libtroupe_tables.so")


class Contents:
    def __init__(self, build, patchelf, cuda, version, epoch, required=REQUIRED):
        self.build, self.patchelf, self.version, self.epoch = build, patchelf, version, epoch
        self.cuda = list(cuda)
        self.programs = [build / name for name in PROGRAMS]
        ours = {path.name: path for path in build.glob("libtroupe_*.so") if path.name not in elf.FOR_GPUS}
        for name in required:
            ours.setdefault(name, build / name)
        self.ours = [ours[name] for name in sorted(ours)]
        for path in [*self.programs, *self.ours, *self.cuda]:
            if not path.is_file():
                raise PackageError(f"there is no {path}; `./dev package` builds it")

    def write(self, folder):
        for program in self.programs:
            elf.copy(program, folder / "bin" / program.name, self.patchelf, "$ORIGIN/../lib")
        for library in self.ours:
            elf.copy(library, folder / "lib" / library.name, self.patchelf, "$ORIGIN")
        for library in self.cuda:  # needs the driver alone; nothing of it is packed
            elf.copy(library, folder / "lib" / library.name, self.patchelf)
        others = elf.libraries_to_pack([*self.programs, *self.ours])
        for name, path in others.items():
            elf.copy(path, folder / "lib" / name, self.patchelf, "$ORIGIN")
        docs = folder / "share" / "doc" / "troupe"
        docs.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / "LICENSE", docs / "LICENSE")
        shutil.copyfile(ROOT / "docs" / "install.md", docs / "install.md")
        inventory = Inventory(self.version, self.epoch, [path.name for path in self.cuda])
        inventory.add_libraries(others)
        inventory.write(docs)
