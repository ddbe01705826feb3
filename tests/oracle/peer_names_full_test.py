"""The lists of other trainers' names are those of their packages, which are downloaded and read again."""

import subprocess

import pytest

import peer_names


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packages")
    try:
        peer_names.download(folder)
    except subprocess.CalledProcessError:
        pytest.skip("the packages cannot be downloaded here")
    return folder


@pytest.mark.parametrize("peer", sorted(peer_names.READERS))
def test_a_list_is_what_its_packages_have(peer, packages):
    assert peer_names.listed(peer, packages) == (peer_names.LISTS / f"{peer}.tsv").read_text()
