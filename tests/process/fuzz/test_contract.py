"""What `make fuzz` does, with few requests."""

import httpx
import pytest

from tests.process.fuzz.__main__ import KEY, fuzz, openapi
from tests.process.fuzz.once import allowed, schema_of, shortened
from tests.support.service import value_of

CHANGES = ("/models/{name}/load", "/models/{name}/offload", "/models/{name}/unload")


@pytest.fixture(scope="module")
def document(locked_service):
    return openapi(locked_service)


def counted(service, route, code):
    """The answers of a route with a status."""
    metrics = httpx.get(f"{service.url}/metrics", headers={"X-API-Key": KEY}, timeout=60, trust_env=False)
    return value_of(metrics.text, f'scoregate_requests_total{{code="{code}",route="{route}"}}')


def test_schemathesis_finds_nothing(locked_service, document):
    """What the schema allows is answered, what it forbids is refused, and every answer is as it says."""
    assert 0 == fuzz(5, locked_service, shortened(document))
    assert counted(locked_service, "/decide", 200)
    assert counted(locked_service, "/decisions/{id}/label", 202), "a label has a key of its own"
    assert all(counted(locked_service, change, 200) for change in CHANGES), "an operator has one, too"


def test_every_option_is_still_described_once(document):
    """Schemathesis gets a document that has each option of each metric once, at `POST /score`."""
    short = shortened(document)
    schemas, shorter = document["components"]["schemas"], short["components"]["schemas"]
    body = short["paths"]["/score"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    every, kept = schemas["Options"]["properties"], shorter["EveryOption"]["properties"]
    whole = {metric: schema_of(schemas, option)["properties"] for metric, option in every.items()}
    described = [allowed(name, option) for one in kept.values() for name, option in one["properties"].items()]

    assert "#/components/schemas/EveryOption" == body["properties"]["options"]["$ref"]
    assert body["properties"].keys() == schemas["ScoreRequest"]["properties"].keys()
    assert whole.keys() == kept.keys()
    assert whole["dsg"] == kept["dsg"]["properties"]
    assert len({*described}) == len(described)
    assert {allowed(name, option) for one in whole.values() for name, option in one.items()} == {*described}


def test_every_field_is_still_described(document):
    """What a path reads has all its fields; those of items that others have, too, are in `POST /score`."""
    short = shortened(document)
    schemas, shorter = document["components"]["schemas"], short["components"]["schemas"]
    requests = [name for name in schemas if name.endswith("Request")]
    first = schemas["WireItem"]["properties"]

    assert {name: [*schemas[name]["properties"]] for name in requests} == {
        name: [*shorter[name]["properties"]] for name in requests
    }
    assert [*first] == [*shorter["WireItem"]["properties"]]
    for name in ("ComparedItem", "DecideItem"):
        items = schemas[name]["properties"]
        left = items.keys() - shorter[name]["properties"].keys()
        assert left
        assert all(allowed("", items[each]) == allowed("", first[each]) for each in left)
