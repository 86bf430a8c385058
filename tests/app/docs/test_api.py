"""docs/api.md: examples that are answered as stated."""

import json
from typing import Any

import pytest

from tests.app.docs.test_readme import form
from tests.support.pages import fences, requests

PAGE = "api.md"

ONE_QUESTION = json.dumps(
    {"questions": [{"id": 1, "kind": "entity - whole", "text": "Is there a circle?", "depends_on": []}]}
)


def test_every_route_has_a_label_of_its_own(app):
    """A described route is never counted as "other"."""
    assert set(app.openapi()["paths"]) <= app.state.service.instruments.routes.keys()


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


@pytest.mark.anyio
async def test_the_first_command_has_its_scores(serve):
    """A form with a picture of the repository and an option."""
    [(_, command)] = fences(PAGE, "sh")
    data, files = form(command.replace("\\\n", ""))
    async with serve() as client:
        answer = (await client.post("/score", data=data, files=files)).json()

    [result] = answer["results"]
    assert set(data["metrics"].split(",")) == result["scores"].keys() == result["details"].keys()
