"""The pages about settings: the profiles and the variables that they show can be used."""

import re

import pytest

from models.families.registry import own
from service.core.settings import SettingsError
from service.wiring.load import load_settings
from tests.support.pages import fences, page

PAGE = "reference/configuration.md"
FAMILIES = "reference/models.md"
TABLES = [text for _, text in fences(FAMILIES, "toml")]


@pytest.mark.parametrize("number", range(len(fences(PAGE, "toml"))))
def test_the_profiles_shown_are_settings(tmp_path, number):
    """Each TOML example of the page is read by `load_settings`."""
    _, text = fences(PAGE, "toml")[number]
    profile = tmp_path / "profile.toml"
    profile.write_text(text, "utf-8")

    assert load_settings(profile, {}).models


@pytest.mark.parametrize("text", TABLES, ids=lambda text: text.split("]")[0].lstrip("["))
def test_the_table_of_a_family_is_settings(tmp_path, text):
    """Each TOML example of the families is read, and names one of them."""
    profile = tmp_path / "profile.toml"
    profile.write_text(text, "utf-8")
    models = load_settings(profile, {}).models

    assert {table.family for table in models.values()} <= own().keys()


def test_a_foreign_setting_is_refused():
    """The line names the setting and the family."""
    assert "A setting of another family ends the start" in page(PAGE)

    with pytest.raises(SettingsError, match=r"models\.vqa\.pretrained: .*clip_flant5"):
        load_settings(None, {"SCOREGATE_MODELS__VQA__PRETRAINED": "openai"})


def test_the_variables_shown_are_settings():
    """The lines of docs/configuration.md with variables of a server and of models fit the demo profile."""
    variable = re.compile(r"^(SCOREGATE_(?:SERVER|MODELS)\w+)='?(.*?)'?$", re.MULTILINE)
    lines = variable.findall(page("configuration.md"))

    assert len(lines) == 3
    assert load_settings(None, dict(lines)).models["questions"].timeout_s == 20
