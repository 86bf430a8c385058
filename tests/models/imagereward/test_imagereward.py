"""ImageReward: the numbers of its authors' package, on a small random checkpoint in the published layout."""

import re
import shutil

import pytest
import torch

from models.core.calls import RewardCall
from models.core.contract import CheckpointError, ModelError
from models.core.family import Plan
from models.core.outcomes import Reward
from models.families.imagereward import FAMILY, REPOSITORY
from models.families.imagereward.model import MAX_TOKENS, MED_CONFIG, VOCABULARY, WEIGHTS, ImageReward
from models.families.registry import families
from tests.models.imagereward.golden import CALLS, ON_THE_CPU, PICTURES, PROMPTS, SAID, rewards
from tests.support.dry_run import dry_run
from tests.support.imagereward_checkpoints import (
    published,
    tensors,
)
from tests.support.pages import section
from tests.support.runs import runs_of

COMMIT = "5" * 40


@pytest.fixture(scope="module")
def model(whole):
    return ImageReward(whole, **ON_THE_CPU)


# --- the numbers of the authors' package --------------------------------------------------------


def test_every_score_is_that_of_the_authors_package(model):
    """Seven pictures and seven prompts, all in one batch, within 1e-5."""
    expected = [row["score"] for row in SAID["scores"]]

    assert rewards(model, *CALLS) == pytest.approx(expected, rel=0, abs=1e-5)
    assert len({round(score, 3) for score in expected}) > 40


def test_prompts_become_the_package_s_tokens_and_the_outcome_says_what_was_cut(model):
    """Accents, case, unknown letters; 35 tokens fit, 36 do not."""
    prepared = [model.prepare(RewardCall(PICTURES["square.png"], prompt)) for prompt in PROMPTS]

    assert [prompt["ids"] for prompt in SAID["prompts"]] == [[*each.data.ids] for each in prepared]
    assert [prompt["truncated"] for prompt in SAID["prompts"]] == [each.data.truncated for each in prepared]
    assert {True, False} == {each.data.truncated for each in prepared}
    assert MAX_TOKENS == max(len(each.data.ids) for each in prepared)


def test_company_changes_nothing(model):
    """Alone or beside longer prompts and other pictures: the same within 1e-5."""
    some = CALLS[::9]

    assert [rewards(model, call)[0] for call in some] == pytest.approx(rewards(model, *some), rel=0, abs=1e-5)


def test_a_picture_of_several_prompts_is_looked_at_once(model):
    """And each score is about its own picture, whatever the order."""
    calls = [CALLS[place] for place in (20, 0, 1, 19)]
    with runs_of(model._network.vision) as looked:
        found = rewards(model, *calls)

    assert [2] == [len(each["pixel_values"]) for each in looked]
    assert found == pytest.approx([SAID["scores"][place]["score"] for place in (20, 0, 1, 19)], abs=1e-5)


# --- outcomes -----------------------------------------------------------------------------------


def test_special_tokens_in_a_prompt_are_text(model):
    """Nobody ends the prompt by typing what ends it."""
    ids = model.prepare(RewardCall(PICTURES["square.png"], "a [SEP] dog")).data.ids

    assert 1 == ids.count(ids[-1])


def test_an_output_that_is_not_finite_is_an_error(checkpoint):
    """Never a number, and never 0."""
    model = ImageReward(checkpoint, **ON_THE_CPU)
    with torch.no_grad():
        model._network.mlp.layers[7].bias.fill_(torch.nan)
    [outcome] = model.score([model.prepare(model.example())])

    assert isinstance(outcome, ModelError)


def test_in_bfloat16_the_head_stays_exact(checkpoint):
    """As in the authors' code; the scores are near those of float32."""
    model = ImageReward(checkpoint, dtype="bfloat16", device="cpu")

    assert {torch.float32} == {weight.dtype for weight in model._network.mlp.parameters()}
    assert {torch.bfloat16} == {weight.dtype for weight in model._network.vision.parameters()}
    assert rewards(model, *CALLS[:2]) == pytest.approx([row["score"] for row in SAID["scores"][:2]], abs=0.3)


def test_the_example_is_answered_and_the_model_says_what_it_is(checkpoint):
    """The call that warms it up; another head is another revision."""
    model = ImageReward(checkpoint, **ON_THE_CPU)
    [outcome] = model.score([model.prepare(model.example())])
    torch.save({**tensors(), "mlp.layers.7.bias": torch.ones(1)}, checkpoint / "ImageReward.pt")

    assert isinstance(outcome, Reward)
    assert ("imagereward", "imagereward") == (model.info.role, model.info.family)
    assert f"reward@{model.info.revision}" == model.info.label
    assert model.info.revision != ImageReward(checkpoint, **ON_THE_CPU).info.revision


# --- the family ---------------------------------------------------------------------------------


def table(checkpoint, **more):
    family = families()["imagereward"]
    return family, family.settings(
        family="imagereward", role="imagereward", checkpoint=str(checkpoint), **more
    )


def test_a_family_loads_what_a_table_names(checkpoint):
    """With its id and revision."""
    family, settings = table(checkpoint, id="ours", revision="7")

    assert "ours@7" == family.load("left", settings).info.label


def test_a_hub_id_brings_its_tokenizer_from_berts_repository(whole, model, offline_hub):
    """From the hub's cache here; scores are labelled with the commit."""
    snapshot(offline_hub, REPOSITORY, whole, (MED_CONFIG, *WEIGHTS))
    snapshot(offline_hub, FAMILY.base, whole, VOCABULARY)

    family, settings = table(REPOSITORY)
    loaded = family.load("left", settings)
    assert f"{REPOSITORY}@{COMMIT}" == loaded.info.label
    assert rewards(model, CALLS[0]) == rewards(loaded, CALLS[0])


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
    family, settings = table(REPOSITORY)
    with pytest.raises(CheckpointError, match=f"models.left: {REPOSITORY}: no such directory, and it cannot"):
        family.load("left", settings)


def test_a_plan_counts_the_numbers(checkpoint):
    """Those of its tensors, none of which is loaded."""
    family, settings = table(checkpoint)
    count = sum(tensor.numel() for tensor in tensors().values())

    assert Plan("reward", str(checkpoint), count) == family.plan("ours", settings)


def test_a_tensor_that_is_left_on_the_cpu_raises(checkpoint):
    """As on a GPU; without that the batch is answered."""
    calls = CALLS[:1] + CALLS[5:8]
    with dry_run():
        model = ImageReward(checkpoint, dtype="bfloat16", device="cuda", revision="-")

        assert [Reward] * 4 == [*map(type, model.score([model.prepare(call) for call in calls]))]
        for part in (
            model._network.mlp,
            model._network.text.embeddings,
            model._network.vision.post_layernorm,
        ):
            part.to("cpu")
            with pytest.raises(RuntimeError, match="device"):
                model.score([model.prepare(call) for call in calls])
            part.to("cuda")


def test_the_size_that_the_documents_tell_is_counted(tmp_path):
    """Of the published checkpoint."""
    family, settings = table(published(tmp_path / "whole"))
    count = family.plan("ours", settings).num_parameters

    told = section("reference/models.md", "## imagereward")
    assert f"{count / 1e6:.0f} million parameters" in told
    assert [f"{4 * count / 1e9:.1f}", f"{2 * count / 1e9:.1f}"] == re.findall(r"([\d.]+) GB", told)
