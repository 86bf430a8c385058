"""docs/configuration.md: every setting with its default, and profiles that can be used."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from models.core.settings import (
    NOT_IN_RECIPE,
    DeviceSettings,
    LocalSettings,
    ModelSettings,
    PlacedSettings,
    RemoteSettings,
    TunedSettings,
)
from models.families.registry import own
from service.core.settings import SettingsError
from service.core.settings.sections import PolicySettings, StyleSettings
from service.core.settings.tree import PartSettings, Settings
from service.wiring.load import load_settings
from tests.support.pages import fences, named_rows, page, section

PAGE = "configuration.md"
MODEL = ("models", "NAME")
BATCH = "models.NAME.batch."  # listed once, for local models

# The tables of the settings that several families share; a family's own are under its name.
SHARED = {
    ModelSettings: "## models.NAME",
    PlacedSettings: "### Under Ray",
    DeviceSettings: "### Devices",
    LocalSettings: "### Local models",
    TunedSettings: "### Reward models with several heads",
    RemoteSettings: "### Models behind an API",
}
HEADINGS = SHARED | {
    family.settings: f"### {family.name}" for family in own().values() if family.settings not in SHARED
}


def leaves(section: type[BaseModel], place: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every setting's path below a section of settings, and its default as the page writes it."""
    for name, field in section.model_fields.items():
        nested = [a for a in (field.annotation, *get_args(field.annotation)) if is_section(a)]
        if nested:
            yield from leaves(nested[0], (*place, name))
        else:
            made = field.default_factory
            default = (
                made.__name__.replace("_", " ") if made else written(field.get_default(), field.is_required())
            )
            yield ".".join((*place, name)), default


def is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def written(default: Any, required: bool) -> str:
    """A default as the tables show it."""
    if required:
        return "required"
    if default is None or default == "":
        return "not set" if default is None else "empty"
    text = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{text}`"


def of_models(settings: type[ModelSettings]) -> dict[str, str]:
    """The settings that tables of one class understand and those of its base do not."""
    own = dict(leaves(settings, MODEL))
    if settings is not ModelSettings:
        own = {place: own[place] for place in own.keys() - dict(leaves(settings.__base__, MODEL)).keys()}
        return own if settings is LocalSettings else {p: own[p] for p in own if not p.startswith(BATCH)}
    assert own["models.NAME.role"] == "required"
    return own | {"models.NAME.role": "the table's name"}  # which the whole tree fills in


def everything() -> set[tuple[str, str]]:
    """Every setting with its default; operators choose the names in five of the tables."""
    found = {
        (place, default)
        for place, default in leaves(Settings)
        if place.split(".")[0] not in ("models", "metrics", "composites", "policies", "questions")
    }
    for settings in HEADINGS:
        found |= of_models(settings).items()
    found |= set(leaves(PartSettings, ("composites", "NAME", "METRIC")))
    found |= set(leaves(PolicySettings, ("policies", "NAME")))
    found |= set(leaves(StyleSettings, ("questions", "styles", "NAME")))
    found |= {("composites.NAME.METRIC.OPTION", "the metric's")}
    return found | {("metrics.METRIC.ROLE", "not set"), ("metrics.METRIC.model", "not set")}


def settings_rows(text: str) -> list[list[str]]:
    """The rows of tables with the columns setting, default and meaning."""
    return [
        [name.strip("`"), *more]
        for name, *more in named_rows(text)
        if len(more) == 2 and name.strip("`").partition(".")[0] in Settings.model_fields
    ]


def test_every_setting_is_documented_and_no_other():
    """Name and default stand in a table of docs/configuration.md as they are in the code."""
    assert everything() == {(name, default) for name, default, _ in settings_rows(page(PAGE))}


@pytest.mark.parametrize(
    ("settings", "heading"), HEADINGS.items(), ids=lambda value: getattr(value, "__name__", value)
)
def test_each_family_has_the_settings_below_its_heading(settings, heading):
    """What several families share stands once, below a heading of its own."""
    text = section(PAGE, heading).split("\n### ")[0]
    documented = {name: default for name, default, _ in settings_rows(text)}

    assert of_models(settings) == documented


def test_batches_of_all_families_have_the_limits_of_local_models():
    """So that the page lists them once."""
    local = {place: default for place, default in leaves(LocalSettings, MODEL) if place.startswith(BATCH)}

    assert local
    for family in own().values():
        batch = {
            place: default for place, default in leaves(family.settings, MODEL) if place.startswith(BATCH)
        }
        assert batch in ({}, local)


def test_every_family_is_listed_with_its_role_and_the_tables_that_hold_for_it():
    """The table of docs/models.md says where each one's settings are; the fake is no choice there."""
    table = page("models.md").split("\n## ", 1)[0]
    listed = {cells[1].strip("`"): cells for cells in named_rows(table)}
    families = {family.name: family for family in own().values() if family.role}

    assert families.keys() == listed.keys()
    for name, family in families.items():
        role, _, _, tables = listed[name]
        assert role == f"`{family.role}`"
        classes = [cls for cls in family.settings.__mro__ if cls in HEADINGS and cls is not ModelSettings]
        shared = [cls for cls in classes if cls in SHARED][1:]  # which the heading of the first one names
        headings = [HEADINGS[cls].lstrip("# ") for cls in reversed(classes) if cls not in shared]
        anchors = [heading.lower().replace(" ", "-") for heading in headings]
        assert anchors == re.findall(r"configuration\.md#([\w-]+)\)", tables)


def test_the_settings_that_are_no_part_of_a_recipe_are_listed():
    """All of them, and no others."""
    outside = {
        name
        for family in own().values()
        for name, field in family.settings.model_fields.items()
        if NOT_IN_RECIPE in field.metadata
    }
    paragraph = next(text for text in page(PAGE).split("\n\n") if text.startswith("A model's **recipe**"))

    assert outside == set(re.findall(r"`([a-z_]+)`", paragraph))


def test_every_default_of_a_model_is_found_by_the_walk():
    """The walk reaches the tables below a model, so that the tests above mean something."""
    found = {place for place, _ in everything()}

    for family in own().values():
        names = family.settings.model_fields.keys() - {"batch", "autoscaling"}
        assert {f"models.NAME.{name}" for name in names} <= found
    assert "models.NAME.batch.max_items" in found


@pytest.mark.parametrize("number", range(len(fences(PAGE, "toml"))))
def test_the_profiles_shown_are_settings(tmp_path, number):
    """Each TOML example of docs/configuration.md is read by `load_settings`."""
    _, text = fences(PAGE, "toml")[number]
    profile = tmp_path / "profile.toml"
    profile.write_text(text, "utf-8")

    assert load_settings(profile, {}).models


def test_the_foreign_setting_of_the_page_is_refused():
    """The line names the setting and the family."""
    assert "`pretrained` in a table of the family `clip_flant5`" in page(PAGE)

    with pytest.raises(SettingsError, match=r"models\.vqa\.pretrained: .*clip_flant5"):
        load_settings(None, {"SCOREGATE_MODELS__VQA__PRETRAINED": "openai"})


def test_the_variables_shown_are_settings():
    """The `export` lines of docs/models.md fit the demo profile."""
    lines = re.findall(r"^export (SCOREGATE_\w+)=(.*)$", page("models.md"), re.MULTILINE)

    assert lines
    assert load_settings(None, dict(lines)).models
