"""docs/add-a-model.md: its family is found, loaded by a profile, and scored with."""

from collections.abc import Iterator
from dataclasses import fields

import httpx
import pytest

from service.plugins import Family
from tests.support.packages import files_of, install, served, shown_runs
from tests.support.pages import rows, section
from tests.support.pictures import b64, png

PAGE = "add-a-model.md"
FILES = files_of(PAGE)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service with the page's profile."""
    folder = tmp_path_factory.mktemp("models")
    install(folder, FILES)
    colours = {"SCOREGATE_MODELS__CLIP__CHECKPOINT": str(folder / "colours.json")}
    with served(folder, FILES["profile.toml"], **colours) as client:
        yield client


def test_the_command_of_the_page_prints_what_it_shows(tmp_path):
    """With the page's profile, in the command's own process."""
    install(tmp_path, FILES)
    [(shown, printed)] = shown_runs(PAGE, tmp_path)

    assert shown == printed


def test_red_is_red_and_a_text_without_a_colour_has_no_score(client):
    """Blue is less like it."""
    items = [{"prompt": prompt, "image": b64(png("red"))} for prompt in ("red", "blue", "a square")]
    answer = client.post("/score", json={"items": items, "metrics": ["clipscore"]})
    first, second, third = answer.json()["results"]

    assert first["scores"]["clipscore"] > 0.99 > second["scores"]["clipscore"]
    assert {"clipscore": "call_refused"} == {name: error["code"] for name, error in third["errors"].items()}


def test_the_model_is_listed_with_its_family_and_a_revision(client):
    """So its outcomes are cached: the same request again is a hit."""
    [model] = client.get("/models").json()["models"]
    body = {"items": [{"prompt": "red", "image": b64(png("red"))}], "metrics": ["clipscore"]}
    client.post("/score", json=body)
    again = client.post("/score", json=body).json()["results"][0]

    assert ("clip", "palette", "colours") == (model["role"], model["family"], model["id"])
    assert 12 == len(model["revision"])
    assert "hit" == again["cache"]["clipscore"]


def test_the_package_imports_nothing_else_of_the_service():
    """`service.plugins` alone is stable."""
    lines = [line for text in FILES.values() for line in text.splitlines() if line.startswith("from ")]
    imported = {line.split()[1] for line in lines}

    assert {"service.plugins"} == {name for name in imported if name.startswith(("service", "models"))}


def test_the_table_of_fields_is_the_declaration():
    """Every field of `Family`, and no other."""
    [_, *table] = rows(section("reference/declarations.md", "## Family"))

    assert {field.name for field in fields(Family)} == {cells[0].strip("`") for cells in table}
