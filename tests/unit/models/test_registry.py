"""Families of models: those of this repository, and those that other packages bring along."""

import sys

import pytest

from models.core.contract import CheckpointError
from models.core.settings import ModelSettings
from models.families.registry import PluginError, families

DECLARATION = """
from models.core.family import Family
from models.core.settings import ModelSettings

FAMILY = Family("{name}", role="{role}", settings=ModelSettings, loader="{module}:load")
"""
LOADER = "\n\ndef load(settings):\n    return f'the model {settings.id}'\n"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Lay a package with one entry point beside the others, as pip does."""
    modules = []

    def installed(module: str, code: str, attribute: str = "FAMILY") -> None:
        (tmp_path / f"{module}.py").write_text(code)
        metadata = tmp_path / f"scoregate_{module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: scoregate-{module}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[scoregate.models]\n{module} = {module}:{attribute}\n")
        modules.append(module)
        monkeypatch.syspath_prepend(tmp_path)
        families.cache_clear()

    yield installed
    families.cache_clear()
    for module in modules:
        sys.modules.pop(module, None)


def test_the_families_of_this_repository_are_known_by_their_roles():
    """`fake` serves any role, as its table says."""
    roles = {name: family.role for name, family in families().items()}

    assert roles == {
        "open_clip": "clip",
        "transformers_clip": "clip",
        "clip_flant5": "vqa",
        "openai_vlm": "vqa",
        "decisions": "vqa",
        "transformers": "questions",
        "openai": "questions",
        "transformers_nli": "nli",
        "sentence_transformer": "embedding",
        "openai_embedding": "embedding",
        "blip_itm": "itm",
        "instructblip": "vqa",
        "blip_vqa": "vqa",
        "imagereward": "imagereward",
        "hpsv3": "hpsv3",
        "hpsv3pp": "hpsv3pp",
        "editreward": "editreward",
        "videoalign": "videoalign",
        "aesthetic": "aesthetic",
        "pal4vst": "artifact",
        "openai_reward": "reward",
        "rapidocr": "ocr",
        "mask2former": "detector",
        "owlv2": "detector",
        "fake": "",
    }
    assert {"transformers", "openai"} == {name for name, family in families().items() if not family.required}


def test_a_family_of_another_package_is_found_by_its_entry_point(install):
    """Its loader takes a table and returns the model; `--check` names what it knows."""
    install("eyes", DECLARATION.format(name="eyes", role="vqa", module="eyes") + LOADER)
    family = families()["eyes"]
    settings = ModelSettings(role="vqa", family="eyes", id="tiny")

    assert "vqa" == family.role
    assert "the model tiny" == family.load("left", settings)
    assert ("tiny", "eyes:load") == ((planned := family.plan("left", settings)).loads, planned.where)


@pytest.mark.parametrize("place", ["nowhere:load", "eyes:absent", "eyes:refuse"])
def test_what_a_loader_raises_is_one_line_that_names_the_table(install, place):
    """A module or function that is not there, and a checkpoint that is refused."""
    refuse = "\n\ndef refuse(settings):\n    raise ValueError('one line', 'and another')\n"
    code = DECLARATION.format(name="eyes", role="vqa", module="eyes").replace("eyes:load", place)
    install("eyes", code + refuse)

    with pytest.raises(CheckpointError, match=r"^models\.left: ") as told:
        families()["eyes"].load("left", ModelSettings(role="vqa", family="eyes"))
    assert "\n" not in str(told.value)


BROKEN = {
    "a name that exists": (
        DECLARATION.format(name="open_clip", role="clip", module="bad"),
        "there is a scoregate.models named 'open_clip' already",
    ),
    "a failing import": ("raise RuntimeError('first line\\nsecond line')", "RuntimeError: first line second"),
    "nothing of that name": ("", "AttributeError: module 'bad' has no attribute 'FAMILY'"),
    "another kind": ("FAMILY = 'open_clip'", "is a str, not a Family"),
}


@pytest.mark.parametrize(("code", "told"), BROKEN.values(), ids=BROKEN)
def test_an_entry_point_that_cannot_be_used_is_one_line_that_names_it(install, code, told):
    """And its package."""
    install("bad", code)
    with pytest.raises(PluginError) as refusal:
        families()

    line = str(refusal.value)
    assert line.startswith("[scoregate.models] bad = bad:FAMILY of scoregate-bad: ")
    assert told in line
    assert "\n" not in line
