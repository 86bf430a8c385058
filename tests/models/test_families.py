"""Each family loads its models from a table, and says before that what it would load."""

import shutil

import pytest
from safetensors.torch import load_file, save_file

from models.checkpoints.locate import DEMO as DEMOS
from models.core.contract import CheckpointError
from models.families.registry import families

DEMO = {
    "open_clip": "clip",
    "clip_flant5": "clip_flant5",
    "transformers": "question_llm",
    "mask2former": "detector",
}


def table(name, **values):
    family = families()[name]
    return family, family.settings(family=name, role=family.role or "vqa", **values)


@pytest.mark.parametrize("name", DEMO)
def test_a_family_loads_the_shipped_model_and_says_what_it_is(name):
    """Role and family are those declared; a table may name it otherwise."""
    family, settings = table(name, checkpoint=f"demo:{DEMO[name]}", id="ours", revision="7")
    model = family.load("left", settings)
    [outcome] = model.score([model.prepare(model.example())])

    assert (family.role, name, "ours@7") == (model.info.role, model.info.family, model.info.label)
    assert (name == "transformers") == model.info.generates == model.info.repeatable
    assert outcome.is_finite()


@pytest.mark.parametrize("name", DEMO)
def test_a_shipped_model_is_labelled_as_the_demos(name):
    """With a digest of its files for a revision."""
    family, settings = table(name, checkpoint=f"demo:{DEMO[name]}")
    info = family.load("left", settings).info

    label = "clip" if name == "open_clip" else f"scoregate-demo-{DEMO[name].replace('_', '-')}"
    assert label in info.id
    assert 12 == len(info.revision)


@pytest.mark.parametrize("name", DEMO)
def test_a_plan_counts_the_numbers_of_the_shipped_model(name):
    """Those of its tensors, none of which is loaded."""
    family, settings = table(name, checkpoint=f"demo:{DEMO[name]}")
    planned = family.plan("left", settings)

    assert planned.where.endswith(f"demo/weights/{DEMO[name]}")
    assert 500_000 < planned.num_parameters < 3_000_000
    assert not planned.remote


@pytest.mark.parametrize("name", DEMO)
@pytest.mark.parametrize(
    "values", [{"checkpoint": "/srv/nothing"}, {"checkpoint": ""}, {"device": "abacus"}], ids=str
)
def test_what_cannot_work_is_one_line_that_names_the_table(name, values):
    """Whether it is loaded or planned: no such directory, no checkpoint at all, no such device."""
    family, settings = table(name, **{"checkpoint": f"demo:{DEMO[name]}"} | values)
    for act in (family.load, family.plan):
        with pytest.raises(CheckpointError, match=r"^models\.left: .") as told:
            act("left", settings)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["open_clip", "clip_flant5"])
def test_overwritten_weights_under_one_revision_are_another_model(name, tmp_path):
    """As of a trainer that saves to one directory; the same files are the same model."""
    shutil.copytree(DEMOS / DEMO[name], tmp_path, dirs_exist_ok=True)
    family, settings = table(name, checkpoint=str(tmp_path), revision="latest")
    before, again = (family.load("left", settings).info for _ in range(2))
    [weights] = tmp_path.glob("*.safetensors")
    save_file({name: tensor * 0.9 for name, tensor in load_file(weights).items()}, weights)
    after = family.load("left", settings).info

    assert before.identity == again.identity != after.identity
    assert before.label == after.label
