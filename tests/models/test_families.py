"""Each family loads its models from a table, and says before that what it would load."""

import hashlib
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from models.checkpoints.locate import DEMO as DEMOS
from models.core.contract import CheckpointError
from models.families.registry import families
from tests.support import (
    artifact_checkpoints,
    blip_checkpoints,
    clip_checkpoints,
    detector_checkpoints,
    image_classifiers,
    nli_checkpoints,
    transformers_clips,
    vl_checkpoints,
)
from tests.support.imagereward_checkpoints import imagereward

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


def instructblip(folder):
    """Without the tokenizer of transformers, which the family does not use."""
    blip_checkpoints.instructblip(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).unlink()


MADE = {
    "aesthetic": lambda folder: clip_checkpoints.save_published(folder),
    "blip_itm": blip_checkpoints.blip,
    "blip_vqa": blip_checkpoints.blip_vqa,
    "clip_flant5": lambda folder: shutil.copytree(DEMOS / "clip_flant5", folder, dirs_exist_ok=True),
    "editreward": vl_checkpoints.editreward,
    "hpsv3": vl_checkpoints.hpsv3,
    "hpsv3pp": vl_checkpoints.hpsv3pp,
    "image_classifier": image_classifiers.save,
    "imagereward": imagereward,
    "instructblip": instructblip,
    "mask2former": detector_checkpoints.mask2former,
    "open_clip": lambda folder: shutil.copytree(DEMOS / "clip", folder, dirs_exist_ok=True),
    "owlv2": detector_checkpoints.owlv2,
    "pal4vst": lambda folder: artifact_checkpoints.save(artifact_checkpoints.network(), folder / "pal.pth"),
    "qwen_vl": vl_checkpoints.qwen_vl,
    "sentence_transformer": nli_checkpoints.sentences,
    "transformers": lambda folder: shutil.copytree(DEMOS / "question_llm", folder, dirs_exist_ok=True),
    "transformers_clip": lambda folder: transformers_clips.save("siglip", folder),
    "transformers_nli": nli_checkpoints.roberta,
    "videoalign": vl_checkpoints.videoalign,
}
UNUSED = {"vocabulary.txt", "generation_config.json"}  # for a warning; of transformers' own `generate`


@pytest.mark.parametrize("name", MADE)
def test_every_file_of_a_directory_is_part_of_the_identity(name, tmp_path, monkeypatch):
    """Also under a revision of the settings, which stays the label."""
    MADE[name](tmp_path)
    more = {"head": str(head(tmp_path))} if name == "aesthetic" else {}
    more |= {"unsafe": ["nsfw"]} if name == "image_classifier" else {}
    hashed, file_digest = [], hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda file, *a: hashed.append(file.name) or file_digest(file, *a)
    )
    family, settings = table(name, checkpoint=str(tmp_path), revision="7", **more)
    info = family.load("left", settings).info

    assert {str(path) for path in tmp_path.rglob("*.*") if path.name not in UNUSED} <= {*hashed}
    assert info.revision.partition("+")[0] == "7"
    assert info.files


@pytest.mark.parametrize("name", ["open_clip", "clip_flant5"])
def test_overwritten_weights_under_one_revision_are_another_model(name, tmp_path):
    """As of a trainer that saves to one directory; the same files are the same model."""
    MADE[name](tmp_path)
    family, settings = table(name, checkpoint=str(tmp_path), revision="latest")
    before, again = (family.load("left", settings).info for _ in range(2))
    [weights] = tmp_path.glob("*.safetensors")
    save_file({name: tensor * 0.9 for name, tensor in load_file(weights).items()}, weights)
    after = family.load("left", settings).info

    assert before.identity == again.identity != after.identity
    assert before.label == after.label


def head(folder):
    """The file of an aesthetic predictor's head, for the embeddings of `save_published`."""
    torch.save(torch.nn.Linear(24, 1).state_dict(), folder / "head.pth")
    return folder / "head.pth"
