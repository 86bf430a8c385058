"""docs/add-a-metric.md: its packages are found, served, described and refused as the page says."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, fields

import httpx
import pytest

from service.plugins import Metric
from tests.support.packages import FAKES, files_of, install, served, shown_runs
from tests.support.pages import fences, rows, section
from tests.support.pictures import b64, png

PAGE = "add-a-metric.md"
FILES = files_of(PAGE)
FIRST = ("dimness.py", "pyproject.toml")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service around fake models that finds the page's three metrics."""
    folder = tmp_path_factory.mktemp("metrics")
    more = [name.removesuffix(".py") for name in FILES if name not in FIRST]
    entry = 'dimness = "dimness:metric"\n'
    entries = entry + "".join(f'{name} = "{name}:metric"\n' for name in more)
    install(folder, FILES | {"pyproject.toml": FILES["pyproject.toml"].replace(entry, entries)})
    large = FAKES + '[models.large]\nrole = "vqa"\nfamily = "fake"\n'
    [(_, table)] = [(info, text) for info, text in fences(PAGE, "toml") if not info]
    with served(folder, large + table) as client:
        yield client


def test_the_whole_package_has_less_than_forty_lines():
    """Its two files together."""
    assert sum(len(FILES[name].splitlines()) for name in FIRST) < 40


def test_the_command_of_the_page_prints_what_it_shows(tmp_path):
    """By the package alone, in the command's own process: the score with its option, and the detail."""
    install(tmp_path, {name: FILES[name] for name in FIRST})
    [(shown, printed)] = shown_runs(PAGE, tmp_path)

    assert shown == printed


def test_an_unknown_option_rejects_the_request(client):
    """With its place."""
    body = {"prompt": "x", "images": [b64(png())], "metrics": ["dimness"]}
    answer = client.post("/score", json=body | {"options": {"dimness": {"contrast": 2}}}).json()

    assert 422 == answer["status"]
    assert ["/options/dimness/contrast"] == [fault["pointer"] for fault in answer["errors"]]


@pytest.mark.parametrize(
    ("colour", "gain", "score"), [("black", 1.0, 1.0), ("white", 1.0, 0.0), ("black", 3, 3)]
)
def test_an_option_reaches_the_metric(client, colour, gain, score):
    """Each request's own."""
    body = {"prompt": "x", "images": [b64(png(colour))], "metrics": ["dimness"]}
    answer = client.post("/score", json=body | {"options": {"dimness": {"gain": gain}}}).json()

    assert score == pytest.approx(answer["results"][0]["scores"]["dimness"])


def test_the_metric_is_listed_wherever_the_page_says(client):
    """/models with its declaration, /health, and OpenAPI with its option and default."""
    listed = client.get("/models").json()["metrics"]["dimness"]
    schemas = client.get("/openapi.json").json()["components"]["schemas"]

    assert {
        "range": [0, 1],
        "direction": "higher is better",
        "formula": "",
        "paper": "none",
        "roles": [],
        "may_use": [],
        "uses": [],
        "options": {"frames": "mean", "gain": 1.0, "share": 0.5, "samples": None},
        "reads_prompt": True,
        "models": [],
        "ready": True,
    } == listed
    assert ["ready"] == client.get("/health").json()["rewards"]["dimness"]
    assert "#/components/schemas/DimnessOptions" in json.dumps(schemas["Options"]["properties"]["dimness"])
    assert 1.0 == schemas["DimnessOptions"]["properties"]["gain"]["default"]


def test_a_metric_asks_the_model_that_its_table_names(client):
    """`unwanted` goes to `large`, and its list of things is bounded."""
    body = {"prompt": "x", "images": [b64(png())], "metrics": ["unwanted"], "explain": True}
    answer = client.post("/score", json=body).json()
    refused = client.post("/score", json=body | {"options": {"unwanted": {"things": []}}})

    [result] = answer["results"]
    seen = result["details"]["unwanted"]["seen"]
    assert {"large"} == set(answer["models"])
    assert {"a watermark", "blurred text"} == set(seen)
    assert 1 - max(seen.values()) == pytest.approx(result["scores"]["unwanted"])
    assert 422 == refused.status_code


def test_a_metric_brings_a_question_style(client):
    """Its sets are written once, and `/questions` knows the style."""
    prompt = "a red square and a blue circle"
    written = client.post("/questions", json={"prompts": [prompt], "style": "tally"}).json()["sets"][0]
    body = {"prompt": prompt, "images": [b64(png())], "metrics": ["tally"], "explain": True}
    [result] = client.post("/score", json=body).json()["results"]

    assert 2 == len(written["questions"])
    assert written["id"] == result["details"]["tally"]["question_set"]
    assert "hit" == result["cache"]["tally"]
    assert result["scores"]["tally"] in (0, 0.5, 1)


def test_the_table_of_fields_is_the_declaration():
    """Every field of `Metric`, with its default, and no other."""
    shown = {MISSING: "required", None: "not set", "": '`""`', "higher is better": '`"higher is better"`'}
    expected = {
        field.name: shown[default] if default in shown else f"`{getattr(default, '__name__', default)}`"
        for field in fields(Metric)
        if field.init and field.name != "_"
        for default in [field.default if field.default_factory is MISSING else field.default_factory]
    }
    [_, *table] = rows(section("reference/declarations.md", "## Metric"))
    documented = {cells[0].strip("`"): cells[1] for cells in table}

    assert expected == documented
