"""Families of models: those of this repository, and those that other packages bring along."""

import ast
import json
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from models.checkpoints.locate import HUB_ID
from models.core.contract import CheckpointError
from models.core.family import Family
from models.core.settings import ModelSettings, TunedSettings
from models.families.names import table_of
from models.families.registry import PluginError, families, own
from service.metrics.common.registry import own as own_metrics
from tests.support.paths import ROOT, parsed

DECLARATION = """
from models.core.family import Family, Served, Signs
from models.core.settings import ModelSettings

FAMILY = Family("{name}", role="{role}", settings=ModelSettings, loader="{module}:load"{more})
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
        "demo_grader": "vqa",
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
        "qwen_vl": "vqa",
        "imagereward": "imagereward",
        "hpsv3": "hpsv3",
        "hpsv3pp": "hpsv3pp",
        "editreward": "editreward",
        "videoalign": "videoalign",
        "aesthetic": "aesthetic",
        "pal4vst": "artifact",
        "image_classifier": "safety",
        "onnx_classifier": "safety",
        "openai_safety": "safety",
        "openai_reward": "reward",
        "openai_rerank": "reranker",
        "openai_clip": "clip",
        "rapidocr": "ocr",
        "mask2former": "detector",
        "owlv2": "detector",
        "fake": "",
    }
    assert {"transformers", "openai"} == {name for name, family in families().items() if not family.required}


def folders():
    """The packages of `models/families`."""
    return sorted(path.parent.name for path in (ROOT / "models/families").glob("*/__init__.py"))


@pytest.mark.parametrize("folder", folders())
def test_a_folder_of_families_is_found_without_a_list(folder):
    """It declares a family or several, and no other folder declares one of the name."""
    module = import_module(f"models.families.{folder}")
    declared = [value for value in vars(module).values() if isinstance(value, Family)]

    assert declared
    assert all(own()[family.name] is family for family in declared)


def test_families_of_this_repository_stand_in_the_order_of_their_folders():
    """A folder's own stand in the order of their declarations."""
    names = [*own()]

    assert [
        "openai",
        "openai_reward",
        "openai_embedding",
        "openai_rerank",
        "openai_clip",
        "openai_vlm",
        "openai_safety",
    ] == [name for name in names if name.startswith("openai")]
    assert names.index("aesthetic") < names.index("open_clip") < names.index("videoalign")


def test_no_two_families_of_this_repository_have_one_hub_id_or_one_sign():
    """So that the order of families decides about none of their checkpoints."""
    declared = own().values()
    for values in (
        [name for family in declared for name in family.repositories],
        [file for family in declared for file in family.signs.files],
        [key for family in declared for key in family.signs.keys],
        [kind for family in declared for kind in family.signs.model_types],
        [end for family in declared for end in family.signs.architectures],
        [name for family in declared if family.served for name in {family.role, family.served.short} - {""}],
    ):
        assert values
        assert {1} == set(Counter(values).values())


def strings():
    """Every text that is an expression in the code of the service or the models."""
    for path in [*(ROOT / "service").rglob("*.py"), *(ROOT / "models").rglob("*.py")]:
        yield from (node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant))


def test_the_hub_ids_of_models_stand_in_the_declarations_of_families_and_nowhere_else():
    """Metrics and tables of sizes refer to them."""
    ids = [name for family in own().values() for name in (*family.repositories, family.base) if name]
    count = Counter(text for text in strings() if text in ids)

    assert Counter(ids) == count


def test_a_reward_model_on_a_language_model_declares_whose_files_it_lacks():
    """Its published checkpoints have weights alone."""
    tuned = [family for family in own().values() if issubclass(family.settings, TunedSettings)]

    assert {"hpsv3", "hpsv3pp", "editreward", "videoalign"} <= {family.name for family in tuned}
    assert all(HUB_ID.fullmatch(family.base) for family in tuned)


@pytest.mark.parametrize(
    "metric", [each for each in own_metrics().values() if each.weights], ids=lambda metric: metric.name
)
def test_the_weights_of_a_metric_are_a_published_model_of_a_family_of_its_role(metric):
    """So that `--model METRIC` finds the table of these weights."""
    [family] = [each for each in own().values() if metric.weights in each.repositories]

    assert metric.own_model
    assert (family.role,) == metric.roles


def checkpoint(tmp_path: Path, **config: object) -> str:
    """A directory with a `config.json`."""
    folder = tmp_path / "checkpoint"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return str(folder)


def test_the_names_of_a_family_of_another_package_are_in_its_declaration(install, tmp_path):
    """Its published models by their hub ids with the rest of their tables, and others by their signs."""
    more = """, served=Served(), repositories={"a/eyes": {}, "a/lid": {"model": "lid-b", "side": 3}},
        signs=Signs(model_types=("eyes",), keys=("irises",))"""
    install("eyes", DECLARATION.format(name="eyes", role="sight", module="eyes", more=more))
    ours = {"role": "sight", "family": "eyes"}

    assert ours | {"checkpoint": "a/eyes"} == table_of("a/eyes")
    assert ours | {"model": "lid-b", "side": 3} == table_of("a/lid")
    for config in ({"model_type": "eyes"}, {"model_type": "t5", "irises": 2}):
        folder = checkpoint(tmp_path, **config)
        assert ours | {"checkpoint": folder} == table_of(folder)
    assert ours | {"base_url": "http://h/v1", "model": "m"} == table_of("sight=openai:m@http://h")


@pytest.mark.parametrize(
    ("architectures", "family"),
    [
        (["OneForCausalLM"], "transformers"),
        (["EyesForCausalLM"], "eyes"),
        (["One", "EyesForCausalLM"], "eyes"),
    ],
)
def test_of_several_ends_of_an_architecture_the_longest_counts(install, tmp_path, architectures, family):
    """Whatever the order of the families, so a package may have one architecture of many for itself."""
    more = ', signs=Signs(architectures=("EyesForCausalLM", "LM"))'
    install("eyes", DECLARATION.format(name="eyes", role="questions", module="eyes", more=more))

    assert family == table_of(checkpoint(tmp_path, architectures=architectures))["family"]


def test_a_family_of_another_package_declares_the_words_of_its_served_models_and_their_releases(install):
    """Its words suggest its role, unless a family of this repository has one in the name, too."""
    more = """, served=Served(short="eye", words=re.compile("eye|iris"), released={"iris-2": {"side": 4}})"""
    code = "import re\n" + DECLARATION.format(name="eyes", role="sight", module="eyes", more=more)
    install("eyes", code)
    tables = [table_of(f"openai:{name}@http://h") for name in ("an-eye", "Big-iris-2", "eye-rerank", "other")]

    assert ["sight", "sight", "reranker", "questions"] == [table["role"] for table in tables]
    assert [None, 4, None, None] == [table.get("side") for table in tables]
    assert "sight" == table_of("eye=openai:m@http://h")["role"]


def test_a_package_cannot_take_a_name_or_a_sign_of_this_repository(install, tmp_path):
    """What two families have belongs to the first, and those of this repository are first."""
    more = """, served=Served(), repositories={"MizzenAI/HPSv3": {}},
        signs=Signs(model_types=("clip",), architectures=("ForCausalLM",))"""
    install("eyes", DECLARATION.format(name="eyes", role="vqa", module="eyes", more=more))
    found = [
        table_of("MizzenAI/HPSv3"),
        table_of(checkpoint(tmp_path, model_type="clip")),
        table_of(checkpoint(tmp_path, architectures=["LlamaForCausalLM"])),
        table_of("vqa=openai:m@http://h"),
    ]

    assert ["hpsv3", "open_clip", "transformers", "openai_vlm"] == [table["family"] for table in found]


def test_a_family_refuses_a_checkpoint_with_its_signs_that_it_cannot_load(install, tmp_path):
    """The line has the name and the family's reason, before any weights are downloaded."""
    more = ', signs=Signs(model_types=("eyes",), refusal=lambda config: config.get("why", ""))'
    install("eyes", DECLARATION.format(name="eyes", role="sight", module="eyes", more=more))
    folder = checkpoint(tmp_path, model_type="eyes", why="it is blind")
    with pytest.raises(CheckpointError) as refused:
        table_of(folder)

    assert f"--model {folder}: it is blind" == str(refused.value)
    assert "eyes" == table_of(checkpoint(tmp_path, model_type="eyes"))["family"]


def test_a_family_of_another_package_is_found_by_its_entry_point(install):
    """Its loader takes a table and returns the model; `--check` names what it knows."""
    install("eyes", DECLARATION.format(name="eyes", role="vqa", module="eyes", more="") + LOADER)
    family = families()["eyes"]
    settings = ModelSettings(role="vqa", family="eyes", id="tiny")

    assert "vqa" == family.role
    assert "the model tiny" == family.load("left", settings)
    assert ("tiny", "eyes:load") == ((planned := family.plan("left", settings)).loads, planned.where)


@pytest.mark.parametrize("place", ["nowhere:load", "eyes:absent", "eyes:refuse"])
def test_what_a_loader_raises_is_one_line_that_names_the_table(install, place):
    """A module or function that is not there, and a checkpoint that is refused."""
    refuse = "\n\ndef refuse(settings):\n    raise ValueError('one line', 'and another')\n"
    code = DECLARATION.format(name="eyes", role="vqa", module="eyes", more="").replace("eyes:load", place)
    install("eyes", code + refuse)

    with pytest.raises(CheckpointError, match=r"^models\.left: ") as told:
        families()["eyes"].load("left", ModelSettings(role="vqa", family="eyes"))
    assert "\n" not in str(told.value)


BROKEN = {
    "a name that exists": (
        DECLARATION.format(name="open_clip", role="clip", module="bad", more=""),
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
