"""The documentation says what the code does: nothing is missing in it, and nothing in it is made up."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.routing import Route

import service
from service import telemetry
from service.app import create_app
from service.documents import tree
from service.settings import ModelSettings, Settings, load_settings
from service.telemetry import Instruments
from tests.fakes import FakeVqa

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODELS = ("clip", "vqa", "questions")

# Settings' tables whose names the operator chooses, and what the page calls them.
CHOSEN = {"models": "NAME", "metrics": "METRIC"}

ONE_QUESTION = json.dumps(
    {"questions": [{"id": 1, "kind": "entity - whole", "text": "Is there a circle?", "depends_on": []}]}
)

FENCE = re.compile(r"^```(\S+)[ ]?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def rows(text: str) -> Iterator[list[str]]:
    """Cells of every table row, headings among them."""
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def first_cells(name: str) -> set[str]:
    """What the tables of a page name in their first column, in code type."""
    return {cells[0].strip("`") for cells in rows(page(name)) if cells[0].startswith("`")}


def section(name: str, heading: str) -> str:
    """The text of a page below *heading*, up to the next of its level."""
    return page(name).split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def fences(name: str, kind: str) -> list[tuple[str, str]]:
    """Info string and text of a page's fenced blocks of one kind."""
    return [(more, text) for found, more, text in FENCE.findall(page(name)) if found == kind]


def leaves(section: type[BaseModel], place: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every setting's path and its default as the page writes it."""
    for name, field in section.model_fields.items():
        nested = [a for a in (field.annotation, *get_args(field.annotation)) if is_section(a)]
        if nested:
            chosen = (CHOSEN[name],) if nested[0] is not field.annotation else ()
            yield from leaves(nested[0], (*place, name, *chosen))
        else:
            yield ".".join((*place, name)), written(field.get_default(), field.is_required())


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


@pytest.fixture
def app(tmp_path: Path) -> FastAPI:
    settings = {
        "models": {"vqa": {"family": "clip_flant5"}},
        "cache": {"questions": f"sqlite:///{tmp_path}/q"},
    }
    return create_app(Settings.model_validate(settings), {"vqa": FakeVqa()})


def endpoints(app: FastAPI) -> set[str]:
    """METHOD and path of every route, those that FastAPI adds among them."""
    added = {f"GET {route.path}" for route in app.routes if isinstance(route, Route)}
    described = app.openapi()["paths"]
    return added | {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}


def test_every_setting_is_documented_and_no_other():
    """Name, variable and default stand in a table of docs/configuration.md as they are in the code."""
    expected = {
        (f"`{place}`", f"`SCOREGATE_{place.upper().replace('.', '__')}`", default)
        for place, default in leaves(Settings)
    }
    documented = {tuple(cells[:3]) for cells in rows(page("configuration.md")) if cells[0].startswith("`")}

    assert expected == documented


def test_every_default_of_a_model_is_found_by_the_walk():
    """The walk reaches the tables below a model, so that the test above means something."""
    found = {place for place, _ in leaves(Settings)}

    assert {f"models.NAME.{name}" for name in ModelSettings.model_fields} - {"models.NAME.batch"} < found
    assert "models.NAME.batch.max_items" in found


def test_every_error_code_is_documented_with_its_status_and_no_other():
    """The table of docs/errors.md is the tree of service/errors.py."""
    documented = [
        (cells[0].strip("`"), int(cells[1])) for cells in rows(page("errors.md")) if cells[1].isdigit()
    ]

    assert {(error.code, error.status) for error in tree()} == set(documented)
    assert len(set(documented)) == len(documented)


def test_every_error_has_a_code_of_its_own():
    """A client can tell any two errors apart by their code."""
    codes = [error.code for error in tree()]

    assert sorted(set(codes)) == sorted(codes)


def test_every_instrument_is_documented_with_its_labels_and_no_other():
    """Name, type and labels stand in the first table of docs/instruments.md."""
    table = page("instruments.md").split("\n## ", 1)[0]
    documented = {
        cells[0].strip("`"): (cells[1], set(re.findall(r"`(\w+)`", cells[2])))
        for cells in rows(table)
        if cells[0].startswith("`")
    }
    existing = {}
    for family in Instruments(MODELS).registry.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for sample in family.samples for label in sample.labels}
        existing[name] = (family.type, labels - {"le"})

    assert existing == documented


def test_every_label_value_is_documented_and_no_other():
    """The second table of docs/instruments.md lists the closed sets."""
    documented: dict[str, set[str]] = {}
    for cells in rows(section("instruments.md", "Label values")):
        if label := re.match(r"`(\w+)`", cells[0]):
            documented.setdefault(label[1], set()).update(re.findall(r"`([^`]+)`", cells[1]))
    existing: dict[str, set[str]] = {}
    for family in Instruments(MODELS).registry.collect():
        for sample in family.samples:
            for label, value in sample.labels.items():
                existing.setdefault(label, set()).add(value)
    del existing["le"]
    assert set(MODELS) == existing.pop("model")

    assert existing == documented


def test_queries_name_instruments_that_exist():
    """The PromQL of docs/instruments.md uses series that this service exposes."""
    series = {sample.name for family in Instruments(MODELS).registry.collect() for sample in family.samples}
    queries = [text for _, text in fences("instruments.md", "promql")]

    assert queries
    assert {name for query in queries for name in re.findall(r"scoregate_\w+", query)} <= series


def test_every_endpoint_is_documented_and_no_other(app):
    """The first table of docs/api.md lists what the app routes."""
    table = page("api.md").split("\n## ", 1)[0]
    cells = " ".join(cells[0] for cells in rows(table))

    assert endpoints(app) == set(re.findall(r"`((?:GET|POST) [^`]+)`", cells))


def test_every_route_has_a_label_of_its_own(app):
    """A described route is never counted as "other"."""
    assert set(app.openapi()["paths"]) <= set(telemetry.ROUTES)


def test_every_option_of_a_metric_is_documented_with_its_default():
    """The option table of docs/api.md has the fields of the wire types."""
    from service.schemas import Options

    table = page("api.md").split("\n### Options\n", 1)[1].split("\n### ", 1)[0]
    documented = {cells[0].strip("`"): cells[2] for cells in rows(table) if cells[0].startswith("`")}
    assert documented.pop("frames` of each metric")
    expected = {
        f"{metric}.{option}": default
        for metric, options in Options.model_fields.items()
        for option, default in options.get_default().model_dump().items()
        if option != "frames"
    }

    assert expected.keys() == documented.keys()
    for option, default in expected.items():
        assert default is None or str(default) in documented[option]


def test_openapi_lists_every_error_status_for_every_route(app):
    """Each route may answer with each status of the error tree, as problem+json."""
    document = app.openapi()
    for methods in document["paths"].values():
        for route in methods.values():
            for status in {error.status for error in tree()}:
                content = route["responses"][str(status)]["content"]["application/problem+json"]
                assert content["schema"]["$ref"].endswith("/Problem")
                codes = {error.code for error in tree() if error.status == status}
                assert codes == set(route["responses"][str(status)]["description"].split(", "))


def test_openapi_describes_the_bodies_of_both_post_routes(app):
    """JSON, and the same JSON in the part `request` of a multipart body."""
    document = app.openapi()
    for path, model in (("/score", "ScoreRequest"), ("/questions", "QuestionsRequest")):
        content = document["paths"][path]["post"]["requestBody"]["content"]
        name = content["application/json"]["schema"]["$ref"].removeprefix("#/components/schemas/")
        form = content["multipart/form-data"]["schema"]["properties"]["request"]["$ref"]

        assert model == name
        assert form.endswith(f"/{model}")
        assert document["components"]["schemas"][model]["properties"]


def test_openapi_refers_to_nothing_that_is_missing(app):
    """Every $ref of the document leads somewhere."""
    document = app.openapi()
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))

    assert references <= set(document["components"]["schemas"])


def requests() -> list[Any]:
    """The requests of docs/api.md: ```json ROUTE STATUS."""
    found = [(info.split(), text) for info, text in fences("api.md", "json") if info]
    return [
        pytest.param(route, int(status), text, id=f"{n}-{route}")
        for n, ((route, status), text) in enumerate(found)
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(("route", "status", "text"), requests())
async def test_the_requests_shown_are_answered_as_stated(serve, fakes, route, status, text):
    """Each example of docs/api.md, sent to the app around fake models."""
    async with serve() as client:
        fakes["questions"].texts["a red circle left of a blue square"] = ONE_QUESTION
        answer = await client.post(f"/{route}", json=json.loads(text))

    assert status == answer.status_code
    assert not answer.json().get("partial")


def test_the_answers_shown_are_json():
    """Blocks that are no requests can be read as JSON too."""
    answers = [text for name in ("api.md", "errors.md") for info, text in fences(name, "json") if not info]

    assert answers
    assert all(isinstance(json.loads(text), dict) for text in answers)


@pytest.mark.parametrize("number", range(len(fences("configuration.md", "toml"))))
def test_the_profiles_shown_are_settings(tmp_path, number):
    """Each TOML example of docs/configuration.md is read by `load_settings`."""
    _, text = fences("configuration.md", "toml")[number]
    profile = tmp_path / "profile.toml"
    profile.write_text(text, "utf-8")

    assert load_settings(profile, {}).models


def test_the_variables_shown_are_settings():
    """The `export` lines of docs/models.md fit the demo profile."""
    lines = re.findall(r"^export (SCOREGATE_\w+)=(.*)$", page("models.md"), re.MULTILINE)

    assert lines
    assert load_settings(None, dict(lines)).models


def test_the_key_shown_opens_the_service(tmp_path):
    """The lines of docs/api.md are a keys file."""
    from service.keys import Keys

    lines = re.search(r"^```\n(# who:.*?)^```$", page("api.md"), re.MULTILINE | re.DOTALL)
    assert lines is not None
    file = tmp_path / "keys"
    file.write_text(lines[1], "utf-8")

    assert "trainer" == Keys.read(file).name_of({"x-api-key": "correct horse"})


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_links_lead_to_files_and_headings(path):
    """Every relative link of a page has its target."""
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text("utf-8")):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file) if file else path
        assert place.is_file(), target
        if not anchor:
            continue
        headings = re.findall(r"^#+ (.*)$", place.read_text("utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, target


def test_every_file_of_the_service_has_its_place_in_the_architecture():
    """The tree of docs/architecture.md names each module, and none that is gone."""
    named = set(re.findall(r"^  (\S+\.py)", section("architecture.md", "Files"), re.MULTILINE))
    existing = {
        str(path.relative_to(ROOT / top))
        for top in ("service", "models")
        for path in (ROOT / top).rglob("*.py")
        if path.name != "__init__.py" and "demo" not in path.parts and path.parent.name != "metrics"
    } | {"metrics/base.py"}

    assert existing == named


def test_decisions_fit_a_page():
    """An ADR has at most forty lines: context, decision, consequences."""
    decisions = sorted((DOCS / "adr").glob("*.md"))

    assert decisions
    for path in decisions:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 40
        assert ["Context", "Decision", "Consequences"] == re.findall(r"^## (.*)$", text, re.MULTILINE)


def test_one_version_is_told_everywhere():
    """The changelog's top entry, the package and pyproject.toml agree."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    top = re.search(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert top is not None
    assert {top[1]} == {service.__version__, project["version"]}
