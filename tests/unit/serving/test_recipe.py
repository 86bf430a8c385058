"""A model's recipe: whatever may change a number is part of it, and nothing else."""

from dataclasses import replace
from typing import Annotated

import pytest
from pydantic import Field

from models.core.contract import ARITHMETIC, ModelInfo
from models.core.settings import NOT_IN_RECIPE, LocalSettings
from models.families.registry import families, packages
from service import __version__
from service.core.settings.tree import Settings
from service.serving import loading as recipes
from service.serving.loading import options, with_recipe
from service.serving.ray.groups import Described

INFO = ModelInfo("vqa", "clip_flant5", "m", "1", "float32", "cpu")
SERVED = {"family": "openai_vlm", "base_url": "http://a/v1", "model": "m"}
HERE = {"family": "clip_flant5", "checkpoint": "demo:clip_flant5"}
CLIP = {"family": "open_clip", "checkpoint": "demo:clip", "role": "clip"}
DETECTOR = {"family": "owlv2", "checkpoint": "demo:detector", "role": "detector"}

PLACES = {"replicas", "num_gpus", "num_cpus", "autoscaling"}
NAMES = {"id", "revision", "required"}  # the model's own id and revision are part of it
ELSEWHERE = {"base_url", "api_key_env", "timeout_s", "max_in_flight", "server_memory_gb"}
COSTS = {"device", "devices", "batch", "features_mb", "threads", "fixed_ms", "per_call_ms"}


def table(given, **more):
    return Settings.model_validate({"models": {"vqa": {**given, **more}}}).models["vqa"]


def recipe(given, info=INFO, **more):
    return with_recipe(info, table(given, **more)).recipe


@pytest.mark.parametrize(
    ("given", "more"),
    [
        (SERVED, {"base_url": "http://b/v1", "timeout_s": 1, "max_in_flight": 3}),
        (HERE, {"device": "cuda:0", "batch": {"max_items": 1}, "features_mb": 0, "required": False}),
        (CLIP, {"device": "cuda:0"}),
    ],
)
def test_where_a_model_runs_and_how_much_of_it_at_once_is_no_part_of_it(given, more):
    """Processes share its answers, and an update of it replaces nothing."""
    assert recipe(given) == recipe(given, **more)


@pytest.mark.parametrize(
    ("given", "more"),
    [
        (SERVED, {"extra_body": {"top_k": 1}}),
        (SERVED, {"model": "another"}),
        (HERE, {"compile": True}),
        (HERE, {"dtype": "bfloat16"}),
        (CLIP, {"resize_mode": "squash"}),
        (DETECTOR, {"max_overlap": 0.7}),
    ],
)
def test_an_option_that_may_change_a_number_is_part_of_it(given, more):
    assert recipe(given) != recipe(given, **more)


def test_options_in_another_order_are_the_same_recipe():
    assert recipe(SERVED, extra_body={"a": 1, "b": 2}) == recipe(SERVED, extra_body={"b": 2, "a": 1})


@pytest.mark.parametrize("field", ["id", "revision", "files", "dtype", "family"])
def test_what_the_model_says_of_itself_is_part_of_it(field):
    assert recipe(HERE) != recipe(HERE, replace(INFO, **{field: "other"}))


def test_the_versions_of_the_arithmetic_and_of_the_service_are_part_of_it():
    assert {"arithmetic": ARITHMETIC, "service": __version__}.items() <= recipes.recipe(
        INFO, table(HERE)
    ).items()


def test_another_version_of_the_package_that_brings_a_family_is_another_recipe(monkeypatch):
    before = recipe(HERE)
    monkeypatch.setitem(packages(), "clip_flant5", "scoregate-palette 0.2.0")
    assert before != recipe(HERE)


def test_an_option_of_another_packages_family_is_part_of_it_unless_it_says_otherwise():
    class PaletteSettings(LocalSettings):
        side: int = 8
        threads: Annotated[int, NOT_IN_RECIPE] = Field(1, ge=1)

    def chosen(**more):
        return options(PaletteSettings(role="clip", family="palette", **more))

    assert chosen() != chosen(side=16)
    assert chosen() == chosen(threads=2)


def test_the_options_that_stand_outside_are_these_and_no_others():
    """Each was looked at: a new one that changes no number has to be added here."""
    outside = {
        name
        for family in families().values()
        for name, field in family.settings.model_fields.items()
        if NOT_IN_RECIPE in field.metadata
    }
    assert outside == PLACES | NAMES | ELSEWHERE | COSTS


def test_replicas_with_other_options_hold_another_model():
    """An update of an option is an update of the model; both names stay as they can be read."""
    info = ModelInfo("clip", "open_clip", "c", "1", "float32", "cpu")
    one, two = (
        Described("a", with_recipe(info, table(CLIP, resize_mode=mode)), 1, 0.1)
        for mode in ("shortest", "squash")
    )
    assert one.model != two.model
    assert one.info.label == two.info.label == "c@1"
