"""Names that other trainers give their settings, read from their published packages.

Nothing of a package is imported or installed: fields of dataclasses and arguments of parsers are read by `ast`, leaves
of a configuration by YAML. `peer_names.py FOLDER` downloads what it needs into FOLDER by `pip download --no-deps`, and
writes tests/data/peer_names/*.tsv: a name, and the methods of `troupe train` in which it may be given.
"""

import ast
import pathlib
import subprocess
import sys
import zipfile

LISTS = pathlib.Path(__file__).resolve().parent.parent / "data" / "peer_names"
PACKAGES = ["openrlhf==0.11.2", "trl==1.16.0", "transformers==5.23.0", "verl==0.9.1", "llamafactory==0.9.5"]
SOURCES = {
    "openrlhf": (["openrlhf"], "arguments of train_ppo_ray, train_sft, train_rm and train_dpo"),
    "trl": (["trl", "transformers"], "fields of SFTConfig, RewardConfig, DPOConfig, KTOConfig, GRPOConfig, ModelConfig and ScriptArguments"),
    "verl": (["verl"], "leaves of the PPO trainer's configuration (_generated_ppo_trainer.yaml)"),
    "llamafactory": (["llamafactory", "transformers"], "arguments of its data, model, training, finetuning and generating classes"),
}


def download(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--python-version",
                    "3.11", "--dest", folder, *PACKAGES], check=True)
    for wheel in pathlib.Path(folder).glob("*.whl"):
        target = pathlib.Path(folder) / wheel.name.split("-")[0]
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)


def the_file(folder, name):
    """The one file of this name, which may lie in a folder that pip would move."""
    found = sorted(pathlib.Path(folder).rglob(name), key=lambda path: len(path.parts))
    if not found:
        raise FileNotFoundError(f"{name} in {folder}")
    return found[0]


def classes_of(*files):
    """Each class of the files: its base classes, and its own annotated fields in order."""
    out = {}
    for file in files:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef):
                bases = [base.id if isinstance(base, ast.Name) else base.attr for base in node.bases]
                fields = [item.target.id for item in node.body
                          if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                          and "ClassVar" not in ast.unparse(item.annotation)
                          and "init=False" not in (ast.unparse(item.value) if item.value else "")
                          and not item.target.id.startswith("_")]
                out[node.name] = (bases, fields)
    return out


def fields_of(classes, name, bases_named=()):
    """With those that it inherits. `bases_named`: (name in this file, class that it stands for)."""
    bases, own = classes[name]
    out = []
    for base in bases:
        base = dict(bases_named).get(base, base)
        if base in classes and base != name:
            out += fields_of(classes, base, bases_named)
    return list(dict.fromkeys(out + own))


def flags_in(node, names):
    """Flags of the calls of add_argument below a node; {NAME} of an f-string is what its loop runs over."""
    out = []
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple) and isinstance(node.target, ast.Name):
        for item in node.iter.elts:
            out += [flag for child in node.body for flag in flags_in(child, {**names, node.target.id: item.value})]
        return out
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
        for arg in node.args:
            parts = arg.values if isinstance(arg, ast.JoinedStr) else [arg]
            text = "".join(names.get(part.value.id, "") if isinstance(part, ast.FormattedValue) else str(part.value)
                           for part in parts if isinstance(part, (ast.Constant, ast.FormattedValue)))
            if text.startswith("--"):
                out.append(text[2:])
    return out + [flag for child in ast.iter_child_nodes(node) for flag in flags_in(child, names)]


def arguments_of(file):
    return list(dict.fromkeys(flags_in(ast.parse(file.read_text()), {})))


def leaves_of(node, path=""):
    if isinstance(node, dict) and node:
        return [leaf for key, value in node.items() for leaf in leaves_of(value, f"{path}.{key}" if path else str(key))]
    return [path]


def openrlhf(folder):
    return {"ppo": arguments_of(the_file(folder, "train_ppo_ray.py")), "sft": arguments_of(the_file(folder, "train_sft.py")),
            "rm": arguments_of(the_file(folder, "train_rm.py")), "dpo": arguments_of(the_file(folder, "train_dpo.py"))}


def trl(folder):
    return trl_of(pathlib.Path(folder) / "trl", pathlib.Path(folder) / "transformers")


def trl_of(package, transformers):
    trainer = the_file(package, "grpo_config.py").parent
    scripts = trainer.parent / "scripts"
    theirs = the_file(transformers, "training_args.py")
    classes = classes_of(theirs, *trainer.glob("*_config.py"), scripts / "utils.py", scripts / "grpo.py")
    model = fields_of(classes, "ModelConfig") + fields_of(classes, "ScriptArguments")
    methods = {"sft": "SFTConfig", "rm": "RewardConfig", "dpo": "DPOConfig", "kto": "KTOConfig", "ppo": "GRPOConfig"}
    out = {method: list(dict.fromkeys(fields_of(classes, name) + model)) for method, name in methods.items()}
    out["ppo"] = list(dict.fromkeys(out["ppo"] + fields_of(classes, "GRPOScriptArguments")))
    return out


def verl(folder):
    import yaml

    names = leaves_of(yaml.safe_load(the_file(folder, "_generated_ppo_trainer.yaml").read_text()))
    return {"ppo": [name for name in names if not name.endswith("_target_")]}


def llamafactory(folder):
    params = the_file(folder, "finetuning_args.py").parent
    theirs = the_file(pathlib.Path(folder) / "transformers", "training_args.py")
    base = classes_of(theirs)
    classes = classes_of(*params.glob("*.py"))
    classes["BaseTrainingArguments"] = ([], fields_of(base, "TrainingArguments"))
    names = []
    for name in ("DataArguments", "ModelArguments", "TrainingArguments", "FinetuningArguments", "GeneratingArguments"):
        names += fields_of(classes, name)
    names = list(dict.fromkeys(names))
    return {method: names for method in ("pretrain", "sft", "rm", "ppo", "dpo", "kto")}


READERS = {"openrlhf": openrlhf, "trl": trl, "verl": verl, "llamafactory": llamafactory}


def listed(peer, folder):
    """The text of a list."""
    methods = READERS[peer](folder)
    packages, what = SOURCES[peer]
    versions = ", ".join(one.replace("==", " ") for one in PACKAGES if one.split("==")[0] in packages)
    lines = [f"# {versions}: {what}. Made by tests/oracle/peer_names.py."]
    for name in dict.fromkeys(name for names in methods.values() for name in names):
        lines.append(name + "\t" + ",".join(method for method, names in methods.items() if name in names))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    folder = sys.argv[1]
    if not list(pathlib.Path(folder).glob("*.whl")):
        download(folder)
    LISTS.mkdir(parents=True, exist_ok=True)
    for peer in READERS:
        (LISTS / f"{peer}.tsv").write_text(listed(peer, folder))
