"""docs/api.md: every endpoint and option, and examples that are answered as stated."""

import json
import re
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Route

from service import telemetry
from service.http.keys import Keys
from service.metrics.contract import MetricOptions
from service.metrics.registry import metrics
from tests.docs.pages import fences, named_rows, page, requests, rows, section

PAGE = "api.md"

ONE_QUESTION = json.dumps(
    {"questions": [{"id": 1, "kind": "entity - whole", "text": "Is there a circle?", "depends_on": []}]}
)


def endpoints(app: FastAPI) -> set[str]:
    """METHOD and path of every route, those that FastAPI adds among them."""
    added = {f"GET {route.path}" for route in app.routes if isinstance(route, Route)}
    described = app.openapi()["paths"]
    return added | {f"{method.upper()} {path}" for path, methods in described.items() for method in methods}


def test_every_endpoint_is_documented_and_no_other(app):
    """The first table of docs/api.md lists what the app routes."""
    table = page(PAGE).split("\n## ", 1)[0]
    cells = " ".join(cells[0] for cells in rows(table))

    assert endpoints(app) == set(re.findall(r"`((?:GET|POST) [^`]+)`", cells))


def test_every_route_has_a_label_of_its_own(app):
    """A described route is never counted as "other"."""
    assert set(app.openapi()["paths"]) <= set(telemetry.ROUTES)


def test_every_option_of_a_metric_is_documented_with_its_default():
    """The option table of docs/api.md has the fields of the metrics' declarations."""
    documented = {cells[0].strip("`"): cells[2] for cells in named_rows(section(PAGE, "### Options"))}
    shared = MetricOptions.model_fields
    assert all(documented.pop(f"{option}` of each metric") for option in shared)
    expected = {
        f"{name}.{option}": default
        for name, metric in metrics().items()
        for option, default in metric.options().model_dump().items()
        if option not in shared
    }

    assert expected.keys() == documented.keys()
    for option, default in expected.items():
        shown = json.dumps(default) if isinstance(default, bool) else str(default)
        assert default is None or shown in documented[option]


def examples() -> list[Any]:
    """The requests of the pages: ```json ROUTE STATUS."""
    return [
        pytest.param(route, status, text, id=f"{n}-{route}")
        for n, (route, status, text) in enumerate([*requests(PAGE), *requests("filtering.md")])
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(("route", "status", "text"), examples())
async def test_the_requests_shown_are_answered_as_stated(serve, fakes, route, status, text):
    """Each example of docs/api.md and docs/filtering.md, sent to the app around fake models."""
    async with serve() as client:
        fakes["questions"].texts["a red circle left of a blue square"] = ONE_QUESTION
        answer = await client.post(f"/{route}", json=json.loads(text))

    assert status == answer.status_code
    assert not answer.json().get("partial")


def test_the_answers_shown_are_json():
    """Blocks that are no requests can be read as JSON too."""
    answers = [
        text
        for name in (PAGE, "errors.md", "filtering.md")
        for info, text in fences(name, "json")
        if not info
    ]

    assert answers
    assert all(isinstance(json.loads(text), dict) for text in answers)


def test_the_key_shown_opens_the_service(tmp_path):
    """The lines of docs/api.md are a keys file, with rights and without."""
    shown = re.findall(r"^```\n((?:# who:|trainer:).*?)^```$", page(PAGE), re.MULTILINE | re.DOTALL)
    file = tmp_path / "keys"
    keys = []
    for lines in shown:
        file.write_text(lines, "utf-8")
        keys.append(Keys.read(file).of({"x-api-key": "correct horse"}))

    assert [("trainer", None), ("trainer", 60_000)] == [(key.name, key.quota) for key in keys if key]
