"""Which files of a data set's repository are its rows: as the package `datasets` chooses them of the same
folder."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(os.environ["TROUPE_SOURCE_DIR"]) / "apps/hub"))
os.environ["HF_HUB_OFFLINE"] = "1"
import data_files  # noqa: E402

datasets = pytest.importorskip("datasets")


def card(text):
    return "---\n" + text + "---\n# A data set\n"


SHARDS = [f"data/{split}-0000{i}-of-00002.parquet" for split in ("train", "test", "extra") for i in range(2)]
LAYOUTS = {
    "shards in data": (SHARDS, ""),
    "shards beside others": (SHARDS + ["more/train.parquet", "x.parquet"], ""),
    "one file": (["rows.jsonl"], ""),
    "files named after splits": (["train.jsonl", "test.jsonl", "dev.jsonl"], ""),
    "names with splits in them": (["my_train_v1.csv", "my-validation.csv", "eval.csv", "trainer.csv"], ""),
    "folders named after splits": (["train/a.jsonl", "train/b.jsonl", "test/a.jsonl"], ""),
    "deep folders": (["en/train/a.jsonl", "en/training_set/b.jsonl", "en/val/c.jsonl", "fr/other/d.jsonl"], ""),
    "a folder wins over names": (["train/a.jsonl", "test.jsonl"], ""),
    "hidden and special files": ([".hidden/train.jsonl", "__pycache__/train.jsonl", "train.jsonl"], ""),
    "json and card": (["train.json", "dataset_infos.json", "config.json"], ""),
    "no split": (["b/two.jsonl", "a/one.jsonl"], ""),
    "training and evaluation": (["training.parquet", "evaluation.parquet", "testing 2.parquet"], ""),
    "words within words": (["contrast.jsonl", "latest.jsonl", "devices.jsonl"], ""),
    "compressed": (["train.jsonl.gz", "test.jsonl.gz"], ""),
    "shards with a hash": (["data/train-00000-of-00001-abcdef0123456789.parquet"], ""),
    "a configuration": (["a/x.jsonl", "b/y.jsonl"], card("configs:\n- config_name: first\n  data_files: a/*.jsonl\n")),
    "configurations": (["main/train-00000-of-00001.parquet", "main/test-00000-of-00001.parquet", "socratic/train-00000-of-00001.parquet"], card(
        "configs:\n- config_name: main\n  default: true\n  data_files:\n  - split: train\n    path: main/train-*\n  - split: test\n    path: main/test-*\n"
        "- config_name: socratic\n  data_files:\n  - split: train\n    path: socratic/train-*\n")),
    "a list of patterns": (["p1/a.csv", "p2/b.csv", "p3/c.csv"], card("configs:\n- config_name: default\n  data_files:\n  - p1/*\n  - p2/*\n")),
    "paths as lists": (["p1/a.csv", "p2/b.csv", "t.csv"], card(
        "configs:\n- config_name: default\n  data_files:\n  - split: train\n    path:\n    - p1/*\n    - p2/*\n  - split: test\n    path: t.csv\n")),
    "double stars": (["x/a.jsonl", "x/y/b.jsonl", "x/y/z/c.jsonl"], card("configs:\n- config_name: default\n  data_files: x/**/*.jsonl\n")),
    "double stars at the end": (["x/a.jsonl", "x/y/b.jsonl"], card("configs:\n- config_name: default\n  data_files: x/**\n")),
    "sets and question marks": (["a1.csv", "a2.csv", "a3.csv", "b1.csv"], card("configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: a[12].csv\n  - split: test\n    path: '?3.csv'\n")),
    "a folder of a configuration": (["en/train.jsonl", "en/test.jsonl", "fr/train.jsonl"], card(
        "configs:\n- config_name: en\n  data_dir: en\n- config_name: fr\n  data_dir: fr\n")),
    "a configuration without files": (["train.jsonl", "test.jsonl"], card("configs:\n- config_name: default\n  sep: ','\n")),
    "a set of negation": (["a1.csv", "a2.csv"], card("configs:\n- config_name: default\n  data_files: 'a[!2].csv'\n")),
}


def of_datasets(folder, config=None):
    """{split: files} of the package, for each configuration: {configuration: ...}."""
    found = {}
    names = datasets.get_dataset_config_names(str(folder))
    for name in names:
        built = datasets.load_dataset_builder(str(folder), name=name, cache_dir=str(folder.parent / "cache"))
        found[name] = {str(split): sorted(os.path.relpath(file, folder.resolve()) for file in files) for split, files in built.config.data_files.items()}
    return found


def of_ours(paths, text):
    rows = sorted(path for path in paths if data_files.has_rows(path))
    known = data_files.configurations(text)
    splits = {name: data_files.splits_of(entry, rows) for name, entry in known.items()} or {"default": data_files.by_convention(rows)}
    return {name: {split: sorted(files) for split, files in found.items()} for name, found in splits.items()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_are_those_of_datasets(tmp_path, layout):
    paths, text = LAYOUTS[layout]
    folder = tmp_path / "set"
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text('{"a": {}}\n')
    if text:
        (folder / "README.md").write_text(text)
    assert of_ours(paths, text) == of_datasets(folder)


def chosen(layout, *name):
    return data_files.choose(*LAYOUTS[layout], *name)


def test_what_a_name_chooses():
    assert chosen("configurations") == ("main", "train", ["main/train-00000-of-00001.parquet"])
    assert chosen("configurations", "test") == ("main", "test", ["main/test-00000-of-00001.parquet"])
    assert chosen("configurations", "socratic", "train")[2] == ["socratic/train-00000-of-00001.parquet"]
    assert chosen("shards in data", "extra")[1:] == ("extra", ["data/extra-00000-of-00002.parquet", "data/extra-00001-of-00002.parquet"])
    assert chosen("one file") == ("default", "train", ["rows.jsonl"])
    # Without configurations a folder stands for one.
    assert data_files.choose(["en/train.jsonl", "en/test.jsonl", "fr/train.jsonl"], "", "fr")[2] == ["fr/train.jsonl"]
    # The same rows in two formats are taken once.
    assert data_files.choose(["train.jsonl", "train.parquet"], "")[2] == ["train.parquet"]


@pytest.mark.parametrize("paths, text, name, words", [
    (["a.bin", "x.tar"], "", (), "it holds .bin, .tar files"),
    ([], "", (), "it holds no files"),
    (["rows.py", "README.md"], "", (), "made by the program rows.py, which is not run"),
    (*LAYOUTS["a folder of a configuration"], (), "has 2 configurations and none by default: en, fr"),
    (*LAYOUTS["configurations"], ("x", "train"), "no configuration 'x'; it has main, socratic"),
    (*LAYOUTS["configurations"], ("x",), "no split 'x'; it has train, test; its configurations are main, socratic"),
    (*LAYOUTS["files named after splits"], ("", "all"), "no split 'all'; it has train, validation, test"),
    (["dev.jsonl", "test.jsonl"], "", (), "no split 'train'; it has validation, test"),
    (["a.csv"], card("configs: 7\n"), (), "are no list of names"),
    (["a.csv"], card("configs:\n- config_name: d\n  data_files: 7\n"), (), "are no names of files"),
    (["a.csv"], card("configs:\n- config_name: d\n  data_files: b.csv\n"), (), "names no file of rows that is there"),
    (["a.csv"], card("configs: [\n"), (), "is no YAML"),
    (["a.csv"], "", ("x", "train"), "its card lists none"),
])
def test_refusals_name_the_cause(paths, text, name, words):
    with pytest.raises(data_files.NoSuchRows) as refused:
        data_files.choose(paths, text, *name)
    assert words in refused.value.what and refused.value.advice
