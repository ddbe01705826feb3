"""The wheel: distribution troupe-rl with the command and module `troupe`."""
import base64
import hashlib
import pathlib
import zipfile

import archives

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TAG = "py3-none-manylinux_2_35_x86_64"

METADATA = """\
Metadata-Version: 2.4
Name: troupe-rl
Version: {version}
Summary: Trains language models from feedback: reinforcement learning, preferences, distillation
License-Expression: Apache-2.0
{license_files}
Keywords: rlhf,grpo,ppo,dpo,sft,language model
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Requires-Python: >=3.10
Provides-Extra: train
Requires-Dist: torch=={torch} ; extra == 'train'
Description-Content-Type: text/markdown

{description}"""

ENTRY_POINTS = """\
[console_scripts]
troupe = troupe_rl.launch:main
troupe-rl = troupe_rl.launch:main
"""


def torch_version():
    """The one LibTorch that libtroupe_learn.so was built with."""
    lines = (ROOT / "runtime/cmake/requirements/build.txt").read_text().splitlines()
    return next(line.removeprefix("torch==") for line in lines if line.startswith("torch=="))


def hash_of(content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"


def place_of(name, info):
    """Where a file of the common contents stands in the wheel; None: it is left out."""
    docs = "share/doc/troupe/"
    if name in ("bin/troupe-bench", docs + "install.md"):  # measurements are half of the size
        return None
    if name == docs + "sbom.spdx.json":
        return f"{info}/sboms/troupe.spdx.json"
    if name == docs + "LICENSE":
        return f"{info}/licenses/LICENSE"
    if name.startswith(docs):
        return f"{info}/licenses/others/{name.removeprefix(docs + 'licenses/')}"
    return f"troupe_rl/{name}"


def write(folder, contents, version, epoch, level):
    info = f"troupe_rl-{version}.dist-info"
    entries = {}  # name -> content, mode
    for name, path in archives.files_below(contents):
        if place := place_of(name, info):
            entries[place] = path.read_bytes(), archives.mode_of(path)
    for name, path in archives.files_below(HERE / "python"):
        if path.suffix == ".py":
            content = path.read_text().replace("@VERSION@", version).replace("@TORCH@", torch_version())
            entries[name] = content.encode(), 0o644
    licenses = [f"License-File: {name.removeprefix(info + '/licenses/')}" for name in sorted(entries)
                if name.startswith(f"{info}/licenses/")]
    description = (ROOT / "docs/install.md").read_text()
    for name, text in (
            ("METADATA", METADATA.format(version=version, torch=torch_version(), description=description,
                                         license_files="\n".join(licenses))),
            ("WHEEL", f"Wheel-Version: 1.0\nGenerator: troupe\nRoot-Is-Purelib: false\nTag: {TAG}\n"),
            ("entry_points.txt", ENTRY_POINTS)):
        entries[f"{info}/{name}"] = text.encode(), 0o644
    record = [f"{name},{hash_of(content)},{len(content)}" for name, (content, _) in sorted(entries.items())]
    record.append(f"{info}/RECORD,,")
    made = folder / f"troupe_rl-{version}-{TAG}.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, (content, mode) in sorted(entries.items()):
            archives.add_to_zip(archive, name, content, mode, epoch, level)
        archives.add_to_zip(archive, f"{info}/RECORD", "".join(f"{line}\n" for line in record).encode(), 0o644, epoch,
                            level)
    return made
