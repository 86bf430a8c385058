"""ImageReward: the numbers of its authors' package, on a small random checkpoint in the published layout."""

import re
import shutil

import pytest

from models.core.calls import RewardCall
from models.core.contract import CheckpointError
from models.families.imagereward import FAMILY, REPOSITORY
from models.families.imagereward.model import MAX_TOKENS, MED_CONFIG, VOCABULARY, WEIGHTS
from tests.models.contract.kind import outcomes
from tests.models.contract.kinds import GOLDEN, IMAGEREWARD, SAID
from tests.support.imagereward_checkpoints import published
from tests.support.pages import section
from tests.support.runs import runs_of

COMMIT = "5" * 40
CALLS = IMAGEREWARD.calls


@pytest.fixture
def model(models):
    return models("imagereward")


def test_prompts_become_the_package_s_tokens_and_the_outcome_says_what_was_cut(model):
    """Accents, case, unknown letters; 35 tokens fit, 36 do not."""
    prepared = [model.prepare(RewardCall(GOLDEN["square.png"], prompt["text"])) for prompt in SAID["prompts"]]

    assert [prompt["ids"] for prompt in SAID["prompts"]] == [[*each.data.ids] for each in prepared]
    assert [prompt["truncated"] for prompt in SAID["prompts"]] == [each.data.truncated for each in prepared]
    assert {True, False} == {each.data.truncated for each in prepared}
    assert MAX_TOKENS == max(len(each.data.ids) for each in prepared)


def test_a_picture_of_several_prompts_is_looked_at_once(model):
    """Two pictures, four calls."""
    with runs_of(model._network.vision) as looked:
        outcomes(model, *(CALLS[place] for place in (20, 0, 1, 19)))

    assert [2] == [len(each["pixel_values"]) for each in looked]


def test_special_tokens_in_a_prompt_are_text(model):
    """Nobody ends the prompt by typing what ends it."""
    ids = model.prepare(RewardCall(GOLDEN["square.png"], "a [SEP] dog")).data.ids

    assert 1 == ids.count(ids[-1])


def test_a_hub_id_brings_its_tokenizer_from_berts_repository(directories, model, offline_hub):
    """From the hub's cache here; scores are labelled with the commit."""
    whole = directories("imagereward")
    snapshot(offline_hub, REPOSITORY, whole, (MED_CONFIG, *WEIGHTS))
    snapshot(offline_hub, FAMILY.base, whole, VOCABULARY)

    loaded = IMAGEREWARD.load(REPOSITORY)
    assert f"{REPOSITORY}@{COMMIT}" == loaded.info.label
    assert outcomes(model, CALLS[0]) == outcomes(loaded, CALLS[0])


def snapshot(cache, repository, directory, files):
    """A commit of *repository* in the hub's cache, with those *files* of a directory that exist."""
    folder = cache / f"models--{repository.replace('/', '--')}"
    commit = folder / "snapshots" / COMMIT
    commit.mkdir(parents=True)
    for file in files:
        if (directory / file).is_file():
            shutil.copy(directory / file, commit)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)


def test_a_hub_that_cannot_be_reached_is_one_line(offline):
    """The hub id stands in it."""
    with pytest.raises(CheckpointError, match=f"models.left: {REPOSITORY}: no such directory, and it cannot"):
        IMAGEREWARD.load(REPOSITORY)


def test_the_size_that_the_documents_tell_is_counted(tmp_path):
    """Of the published checkpoint."""
    count = IMAGEREWARD.plan(published(tmp_path / "whole")).num_parameters

    told = section("reference/models.md", "## imagereward")
    assert f"{count / 1e6:.0f} million parameters" in told
    assert [f"{4 * count / 1e9:.1f}", f"{2 * count / 1e9:.1f}"] == re.findall(r"([\d.]+) GB", told)
