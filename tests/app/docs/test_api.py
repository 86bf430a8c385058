"""docs/api.md: every endpoint and option, and examples that are answered as stated."""

import json
import re
from typing import Any

import pytest

from service.web.dialect_ports import ports
from service.web.edge import App
from tests.support.fake_service import DIALECTS
from tests.support.pages import page, requests, rows, section

PAGE = "api.md"

ONE_QUESTION = json.dumps(
    {"questions": [{"id": 1, "kind": "entity - whole", "text": "Is there a circle?", "depends_on": []}]}
)


def endpoints(app: App) -> set[str]:
    """METHOD and path of every route, those that are not in the OpenAPI document among them."""
    return {f"{method} {route.path}" for route in app.routes for method in route.methods if method != "HEAD"}


def test_every_endpoint_is_documented_and_no_other(app):
    """The first table of docs/api.md lists what the app routes."""
    table = page(PAGE).split("\n## ", 1)[0]
    cells = " ".join(cells[0] for cells in rows(table))

    assert endpoints(app) == set(re.findall(r"`((?:GET|POST|DELETE) [^`]+)`", cells))


def test_every_route_has_a_label_of_its_own(app):
    """A described route is never counted as "other"."""
    assert set(app.openapi()["paths"]) <= app.state.service.instruments.routes.keys()


@pytest.mark.anyio
async def test_every_route_label_is_documented_and_no_other(serve):
    """The row of docs/prometheus-metrics.md, with all dialects and the port for pickles."""
    [row] = [
        cells for cells in rows(section("prometheus-metrics.md", "## Label values")) if cells[0] == "`route`"
    ]
    async with serve(dialects={"enabled": DIALECTS, "pickle_port": 2}) as client:
        state = client._transport.app.state
        ports(state.service, state.dialects, state.bodies)

    assert state.service.instruments.routes.keys() == set(re.findall(r"`([^`]+)`", row[1]))


def examples() -> list[Any]:
    """The requests of the pages: ```json ROUTE STATUS."""
    return [
        pytest.param(route, status, text, id=f"{n}-{route}")
        for n, (route, status, text) in enumerate(
            [*requests(PAGE), *requests("filtering.md"), *requests("comparing.md")]
        )
    ]


@pytest.mark.shared
@pytest.mark.anyio
@pytest.mark.parametrize(("route", "status", "text"), examples())
async def test_the_requests_shown_are_answered_as_stated(serve, fakes, route, status, text):
    """Each example of docs/api.md, filtering.md and comparing.md, sent to the app around fake models."""
    async with serve() as client:
        fakes["questions"].texts["a red circle left of a blue square"] = ONE_QUESTION
        answer = await client.post(f"/{route}", json=json.loads(text))

    assert status == answer.status_code
    assert not answer.json().get("partial")
