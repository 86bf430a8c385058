"""What `make fuzz` does, with few requests."""

from copy import deepcopy

import httpx
import pytest

from tests.process.fuzz.__main__ import KEY, fuzz, openapi
from tests.process.fuzz.once import options_once
from tests.support.service import value_of


@pytest.fixture(scope="module")
def document(locked_service):
    return openapi(locked_service)


def counted(service, route, code):
    """The answers of a route with a status."""
    metrics = httpx.get(f"{service.url}/metrics", headers={"X-API-Key": KEY}, timeout=60, trust_env=False)
    return value_of(metrics.text, f'scoregate_requests_total{{code="{code}",route="{route}"}}')


def test_schemathesis_finds_nothing(locked_service, document):
    """What the schema allows is answered, what it forbids is refused, and every answer is as it says."""
    short = deepcopy(document)
    options_once(short)

    assert 0 == fuzz(5, locked_service, short)
    assert counted(locked_service, "/decide", 200)
    assert counted(locked_service, "/decisions/{id}/label", 202), "a label has a key of its own"


def test_every_option_is_still_described_once(document):
    """Schemathesis gets a document that differs in the options alone; `POST /score` has all of them."""
    short = deepcopy(document)
    options_once(short)
    schemas, shorter = document["components"]["schemas"], short["components"]["schemas"]
    body = short["paths"]["/score"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    changed = {name for name in schemas if schemas[name] != shorter[name]}

    assert schemas["Options"] == shorter["EveryOption"]
    assert "#/components/schemas/EveryOption" == body["properties"]["options"]["$ref"]
    assert body["properties"].keys() == schemas["ScoreRequest"]["properties"].keys()
    assert {"Options", "ScoreRequest", "RankRequest", "CompareRequest", "QuestionsRequest"} == changed
    assert schemas.keys() | {"EveryOption"} == shorter.keys()
