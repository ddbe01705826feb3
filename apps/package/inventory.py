"""What a package contains of others: an SBOM (SPDX 2.3, JSON) and their licences, from dpkg and Cargo's metadata."""
import datetime
import hashlib
import json
import os
import pathlib
import re

import elf
from errors import PackageError

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Libraries of headers alone, which are compiled into the program: a file of each.
HEADERS = ("/usr/include/boost/version.hpp", "/usr/include/CLI/CLI.hpp", "/usr/include/nlohmann/json.hpp")
LICENSE_FILE = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def crates():
    """Every crate that is compiled into our Rust libraries: (name, version, licence, folder), sorted."""
    found = {}
    cargo = os.environ.get("CARGO", "cargo")
    for manifest in sorted(ROOT.glob("runtime/*/rust/Cargo.toml")):
        facts = json.loads(elf.run([cargo, "metadata", "--format-version", "1", "--locked", "--offline",
                                    "--filter-platform", "x86_64-unknown-linux-gnu", "--manifest-path", manifest]))
        packages = {one["id"]: one for one in facts["packages"]}
        needs = {node["id"]: [dep["pkg"] for dep in node["deps"]
                              if any(kind["kind"] is None for kind in dep["dep_kinds"])]
                 for node in facts["resolve"]["nodes"]}
        queue, seen = [facts["resolve"]["root"]], set()
        while queue:
            one = queue.pop()
            if one in seen:
                continue
            seen.add(one)
            queue += needs[one]
            package = packages[one]
            if package["source"]:  # our own have none
                found[package["name"], package["version"]] = (
                    (package["license"] or "NOASSERTION").replace("/", " OR ").replace("  OR  ", " OR "),
                    pathlib.Path(package["manifest_path"]).parent)
    return [(name, version, *rest) for (name, version), rest in sorted(found.items())]


def debian_package(path):
    """Name, version, source package and its version of the Debian package that a file belongs to."""
    for candidate in dict.fromkeys([path, path.replace("/usr/lib/", "/lib/", 1)]):
        try:
            name = elf.run(["dpkg", "-S", candidate]).split(": ")[0].split(",")[0].strip()
            break
        except PackageError as error:
            failure = error
    else:
        raise PackageError(f"no Debian package has {path}, so its licence is not known ({failure})")
    fields = elf.run(["dpkg-query", "-W", "-f", "${Package}\t${Version}\t${source:Package}\t${source:Version}", name])
    return fields.split("\t")


class Inventory:
    def __init__(self, version, epoch, cuda=()):
        """cuda: the names of the libraries for GPUs that are packed."""
        self.version, self.epoch, self.cuda = version, epoch, cuda
        self.packages = []   # SPDX packages without our own
        self.relations = []  # of ours to each
        self.licenses = {}   # relative name -> text

    def add_libraries(self, libraries):
        """libraries: name -> file of the shared libraries that are packed beside ours."""
        for path, relation in [*((path, "DYNAMIC_LINK") for path in libraries.values()),
                               *((path, "STATIC_LINK") for path in HEADERS)]:
            name, version, source, source_version = debian_package(path)
            if any(one["name"] == name for one in self.packages):
                continue
            self.add(name, version, "NOASSERTION", relation,
                     f"pkg:deb/debian/{name}@{quoted(version)}?arch=amd64",
                     comment=f"source package {source} {source_version}")
            text = pathlib.Path("/usr/share/doc", name, "copyright")
            if not text.is_file():
                raise PackageError(f"there is no {text}; reinstall the package {name}")
            self.licenses[f"debian/{name}.txt"] = text.read_text(errors="replace")

    def add(self, name, version, license_text, relation, purl, comment=None):
        kind = purl.split("/")[0].removeprefix("pkg:")
        identity = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}-{version}")
        package = {"SPDXID": identity, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
                   "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": license_text,
                   "copyrightText": "NOASSERTION",
                   "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                     "referenceLocator": purl}]}
        if comment:
            package["comment"] = comment
        self.packages.append(package)
        self.relations.append((identity, relation))

    def add_crates(self):
        texts = {}  # text -> crates
        for name, version, license_text, folder in crates():
            self.add(name, version, license_text, "STATIC_LINK", f"pkg:cargo/{name}@{quoted(version)}")
            for file in sorted(folder.iterdir()):
                if file.is_file() and LICENSE_FILE.match(file.name):
                    texts.setdefault(file.read_text(errors="replace").strip(), []).append(f"{name} {version}")
        self.licenses["crates.txt"] = "".join(
            f"{'=' * 80}\nOf {', '.join(dict.fromkeys(owners))}:\n\n{text}\n\n" for text, owners in texts.items())

    def add_cuda_runtime(self):
        for folder in sorted(ROOT.glob(".venv/cuda/lib/python3*/site-packages/nvidia_cuda_runtime-*.dist-info")):
            version = folder.name.split("-")[1].removesuffix(".dist")
            self.add("nvidia-cuda-runtime", version, "NOASSERTION", "STATIC_LINK",
                     f"pkg:pypi/nvidia-cuda-runtime@{version}")
            for file in sorted(folder.rglob("*")):
                if file.is_file() and LICENSE_FILE.match(file.name):
                    self.licenses["nvidia-cuda-runtime.txt"] = file.read_text(errors="replace")
        if "nvidia-cuda-runtime.txt" not in self.licenses:
            raise PackageError("no licence of nvidia-cuda-runtime in .venv/cuda; `./dev build --cuda` makes it")

    def add_cuda12_runtime(self):
        toolkit = ROOT / ".venv/cuda12"
        try:
            version = re.search(r"nvidia-cuda-dev=(\S+)", (toolkit / ".complete").read_text()).group(1)
            self.licenses["nvidia-cuda-dev.txt"] = (toolkit / "License.txt").read_text(errors="replace")
        except OSError as error:
            raise PackageError(f"no licence of the CUDA 12 runtime ({error}); `./dev build --cuda=12` makes it") from None
        self.add("nvidia-cuda-dev", version, "NOASSERTION", "STATIC_LINK",
                 f"pkg:deb/debian/nvidia-cuda-dev@{quoted(version)}?arch=amd64")

    def document(self):
        ours = {"SPDXID": "SPDXRef-troupe", "name": "troupe", "versionInfo": self.version,
                "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
                "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION"}
        packages = [ours, *sorted(self.packages, key=lambda one: one["SPDXID"])]
        digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
        created = datetime.datetime.fromtimestamp(self.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-troupe")]
        relations += [("SPDXRef-troupe", relation, identity) for identity, relation in sorted(self.relations)]
        return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                "name": f"troupe-{self.version}", "documentNamespace": f"urn:sha256:{digest}",
                "creationInfo": {"created": created, "creators": ["Tool: troupe-package"]},
                "packages": packages,
                "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}
                                  for one, kind, other in relations]}

    def write(self, folder):
        """sbom.spdx.json and licenses/ in `folder`."""
        self.add_crates()
        for name in self.cuda:
            (self.add_cuda12_runtime if name == "libtroupe_cuda12.so" else self.add_cuda_runtime)()
        (folder / "sbom.spdx.json").write_text(json.dumps(self.document(), indent=1) + "\n")
        for name, text in self.licenses.items():
            file = folder / "licenses" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


def quoted(version):
    """A version as package URLs write it."""
    return version.replace("%", "%25").replace("+", "%2B").replace(":", "%3A")
