"""TRL's names in our list are those of the package that is installed here, read by `ast`.

tests/unit/runtime/config/names_test.cpp sees to it that each name of a list has a row; peer_names_full_test.py reads the
other packages again.
"""

import importlib.metadata
import pathlib

import peer_names


def test_the_list_of_trl_is_that_of_the_installed_package():
    site = pathlib.Path(importlib.metadata.distribution("trl").locate_file("."))
    versions = {one.split("==")[0]: one.split("==")[1] for one in peer_names.PACKAGES}
    for package in ("trl", "transformers"):
        assert importlib.metadata.version(package) == versions[package], "run tests/oracle/peer_names.py FOLDER"
    lines = [line.split("\t") for line in (peer_names.LISTS / "trl.tsv").read_text().splitlines()[1:]]
    for method, names in peer_names.trl_of(site / "trl", site / "transformers").items():
        listed = sorted(name for name, methods in lines if method in methods.split(","))
        assert len(names) > 100 and sorted(names) == listed, method
