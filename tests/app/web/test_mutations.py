"""A valid request, changed at random: whatever comes of it is answered."""

import json
import random

import pytest

from tests.support.pictures import b64, item, png
from tests.support.refusals import JSON, refused

pytestmark = pytest.mark.anyio

VALUES = [
    None,
    True,
    0,
    -1,
    10**40,
    1.5,
    "",
    "a",
    "\0",
    "\ud800",
    [],
    {},
    [[]],
    {"": {}},
    "sha256:",
    ["dsg"] * 9,
]


def mutated(value, random: random.Random):
    """*value* with a few of its places replaced, dropped or added to."""
    if random.random() < 0.12:
        return random.choice(VALUES)
    if isinstance(value, dict):
        kept = {key: mutated(one, random) for key, one in value.items() if random.random() > 0.04}
        return kept | ({random.choice("abc\0\ud800/~"): 1} if random.random() < 0.04 else {})
    if isinstance(value, list):
        return [mutated(one, random) for one in value for _ in range(random.choice([1, 1, 1, 0, 2]))]
    return value


async def test_no_input_whatever_is_a_fault_of_ours(serve):
    """Three hundred mutations of a valid request: 200, or 4xx as a problem; never 5xx."""
    chance = random.Random(20)
    asked = {"question": "Is {} there?", "answer": "Yes", "output": "logit", "normalization": "product"}
    own = [{"id": 1, "text": "Is it red?", "kind": "colour", "depends_on": []}]
    valid = {
        "items": [item(id="a"), item(image={"data": b64(png())}), item(image=[b64(png())])],
        "metrics": ["vqascore", "clipscore", "dsg"],
        "options": {"vqascore": asked, "clipscore": {"scale": "hessel"}, "dsg": {"question_set": own}},
        "priority": "bulk",
        "timeout_ms": 60_000,
        "explain": True,
    }
    seen = set()
    async with serve() as client:
        assert 200 == (await client.post("/score", json=valid)).status_code
        for _ in range(300):
            text = json.dumps(mutated(valid, chance))
            answer = await client.post("/score", content=text, headers=JSON)
            seen.add(answer.status_code)
            if answer.status_code != 200:
                refused(answer, answer.status_code, answer.json()["code"])

    assert {200, 422} <= seen <= {200, 400, 404, 422}
