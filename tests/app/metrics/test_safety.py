"""How safe an image is to show, and decisions by it."""

from statistics import fmean

import pytest

from tests.support.fakes import FakeSafety
from tests.support.pictures import b64, item, png
from tests.support.questions import scored

pytestmark = pytest.mark.anyio
POLICY = {
    "accept": "vqascore >= 0.6 and safety >= 0.9",
    "review": "vqascore >= 0.6 and safety >= 0.5",
    "timeout_ms": 60_000,
}
COLOURS = [(40 * red, 40 * green, 90) for red in range(6) for green in range(6)]


@pytest.fixture(autouse=True)
def safety(fakes):
    """A model that finds unsafe images."""
    fakes["safety"] = FakeSafety()
    return fakes["safety"]


async def test_the_score_is_the_models_whatever_the_prompt(serve, safety):
    """Two prompts of one picture, and none, are one call."""
    async with serve() as client:
        found = [await scored(client, "safety", item(prompt)) for prompt in ("a dog", "a cat")]
        found.append(await scored(client, "safety", {"image": item()["image"]}))
        listed = (await client.get("/models")).json()["metrics"]["safety"]

    assert 1 == len(safety.calls)
    assert 0 < found[0]["scores"]["safety"] < 1
    assert found[0]["scores"] == found[1]["scores"] == found[2]["scores"]
    assert (False, ["safety"], [0, 1]) == (listed["reads_prompt"], listed["roles"], listed["range"])


async def test_a_policy_accepts_what_fits_its_prompt_and_is_safe(serve, safety):
    """An unsafe picture is rejected however well it fits its prompt; the sentence has both scores."""
    pictures = [{"image": b64(png(colour)), "prompt": "a red square"} for colour in COLOURS]
    async with serve(policies={"show": POLICY}) as client:
        answer = await client.post("/decide", json={"policy": "show", "items": pictures})
        both = {"items": pictures, "metrics": ["vqascore", "safety"]}
        results = (await client.post("/score", json=both)).json()["results"]

    assert 200 == answer.status_code, answer.text
    decided = answer.json()["decisions"]
    for entry, result in zip(decided, results, strict=True):
        fit, safe = (result["scores"][name] for name in ("vqascore", "safety"))
        least = 0 if fit < 0.6 else safe
        assert ("accept" if least >= 0.9 else "review" if least >= 0.5 else "reject") == entry["decision"]
    assert {"accept", "review", "reject"} == {entry["decision"] for entry in decided}
    accepted = next(entry for entry in decided if entry["decision"] == "accept")
    assert "safety" in accepted["because"]
    assert any(
        entry["decision"] == "reject" and result["scores"]["vqascore"] >= 0.6
        for entry, result in zip(decided, results, strict=True)
    )


async def test_the_least_safe_frame_decides_where_the_policy_says_so(serve):
    """By the options of a policy, as the guide has them; by default it is the mean of all frames."""
    frames = [b64(png(colour)) for colour in COLOURS[:8]]
    policy = {"accept": "safety >= 0", "timeout_ms": 60_000}
    policies = {"mean": policy, "least": {**policy, "options": {"safety": {"frames": "min"}}}}
    found = {}
    async with serve(policies=policies) as client:
        each = [(await scored(client, "safety", {"image": one}))["scores"]["safety"] for one in frames]
        for name in policies:
            body = {"policy": name, "items": [{"image": frames}]}
            [entry] = (await client.post("/decide", json=body)).json()["decisions"]
            found[name] = entry["scores"]["safety"]

    assert {"mean": pytest.approx(fmean(each)), "least": min(each)} == found


async def test_a_policy_without_the_score_fails_closed(serve, safety):
    """A broken classifier shows nothing to users, where `without_score` is the default."""
    safety.fault = lambda call: RuntimeError("no weights") if call.image.size == (9, 9) else None
    pictures = [{"image": b64(png(colour, (9, 9))), "prompt": "a red square"} for colour in COLOURS[:6]]
    policy = {"accept": "safety >= 0.9", "timeout_ms": 60_000}
    async with serve(policies={"show": policy}) as client:
        decided = (await client.post("/decide", json={"policy": "show", "items": pictures})).json()

    assert ["reject"] * 6 == [entry["decision"] for entry in decided["decisions"]]
    assert "without_score: safety" in decided["decisions"][0]["because"]
