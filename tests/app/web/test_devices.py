"""What callers and probes see of a model on several devices."""

from functools import partial

import pytest

from models.core.copies import Copies
from tests.support.fakes import FakeVqa
from tests.support.pictures import item

pytestmark = pytest.mark.anyio

NAMES = ("cpu:0", "cpu:1", "cpu:2", "cpu:3")


def first_fails(name, out, call):
    """Fail for good on the device that is first to have a batch; which one that is varies."""
    out.append(name)
    return RuntimeError("CUDA error: an illegal memory access") if name == out[0] else None


async def test_a_device_that_is_out_is_told_while_the_others_serve(serve, fakes):
    """Every request is answered, `/health` says which device is out, and `/readyz` stays 200."""
    copies, out = {name: FakeVqa() for name in NAMES}, []
    fakes["vqa"] = Copies(copies)
    body = {"items": [item(f"a cat {n}") for n in range(20)], "metrics": ["vqascore"]}
    async with serve(cache={"scores": "off"}) as client:
        before = (await client.get("/health")).json()
        whole = (await client.post("/score", json=body)).json()
        for name, copy in copies.items():
            copy.fault = partial(first_fails, name, out)
        answers = [(await client.post("/score", json=body)) for _ in range(4)]
        health = await client.get("/health")
        ready = await client.get("/readyz")
        models = {entry["name"]: entry for entry in (await client.get("/models")).json()["models"]}

    assert ("ok", {}) == (before["status"], before["devices"])
    assert [200] * 4 == [answer.status_code for answer in answers]
    assert [result["scores"] for result in whole["results"]] == [
        result["scores"] for result in answers[-1].json()["results"]
    ]
    assert (200, "degraded", ["ready"]) == (
        health.status_code,
        health.json()["status"],
        health.json()["rewards"]["vqascore"],
    )
    assert "an illegal memory access" in health.json()["devices"]["vqa"][out[0]]
    assert (200, True) == (ready.status_code, ready.json()["ready"])
    assert [*NAMES] == list(models["vqa"]["devices"])
    assert [out[0]] == [name for name, state in models["vqa"]["devices"].items() if state != "ready"]
    assert "devices" not in models["clip"]
