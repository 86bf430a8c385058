"""The small checkpoint in the published layout: one to read, and copies to spoil."""

import shutil

import pytest

from tests.support.imagereward_checkpoints import imagereward


@pytest.fixture(scope="package")
def whole(tmp_path_factory):
    """The checkpoint, to be read only."""
    return imagereward(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def checkpoint(whole, tmp_path):
    """A copy of one's own, to be spoiled."""
    return shutil.copytree(whole, tmp_path / "reward")
