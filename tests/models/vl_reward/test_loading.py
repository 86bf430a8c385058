"""The reward models on a vision-language model are loaded by one constructor, from what a family declares."""

from importlib import import_module

import pytest

from models.core.contract import CheckpointError
from models.core.family import found
from models.families.registry import families
from models.families.vl_reward import VlReward

FAMILIES = {"hpsv3": "Hpsv3", "hpsv3pp": "Hpsv3pp", "editreward": "EditReward", "videoalign": "VideoAlign"}


@pytest.mark.parametrize(("name", "model"), FAMILIES.items())
def test_the_four_families_share_their_constructor_and_their_loader(name, model):
    """A family adds what its released code has of its own; its declaration names what the class inherits."""
    kind = getattr(import_module(f"models.families.{name}.model"), model)
    family = families()[name]

    assert VlReward.__init__ is kind.__init__
    assert VlReward.from_settings.__func__ is found(family.loader).__func__
    assert (family, kind) == (kind.family, found(family.loader).__self__)
    assert found(family.weights) == kind.weights_files


@pytest.mark.parametrize("name", FAMILIES)
def test_a_directory_without_weights_is_refused_before_anything_is_read(name, tmp_path):
    """The line names the table and the directory."""
    family = families()[name]
    settings = family.settings(role=name, family=name, checkpoint=str(tmp_path))
    with pytest.raises(CheckpointError, match=rf"^models\.ours: {tmp_path}"):
        family.load("ours", settings)
