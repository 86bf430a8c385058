"""Items without a prompt, for metrics that read none."""

import pytest

from tests.support.fakes import FakeAesthetic, FakeArtifact, FakeSafety
from tests.support.pictures import b64, png
from tests.support.refusals import refused

pytestmark = pytest.mark.anyio
RED, BLUE = b64(png()), b64(png("blue"))
FREE = ["aesthetic", "artifact", "safety"]
TABLES = {"aesthetic": {"model": "aesthetic"}}


@pytest.fixture(autouse=True)
def models(fakes):
    """Models of metrics that read no prompt."""
    fakes |= {"aesthetic": FakeAesthetic(), "artifact": FakeArtifact(), "safety": FakeSafety()}


@pytest.mark.parametrize(
    "body",
    [
        {"items": [{"image": RED}, {"image": BLUE, "prompt": None}]},
        {"image": RED},
        {"images": [RED, BLUE]},
        {"items": [{"image": RED, "metrics": ["artifact"]}], "metrics": ["vqascore"]},
    ],
    ids=["items", "image", "images", "metrics of its own"],
)
async def test_metrics_that_read_no_prompt_need_none(serve, fakes, body):
    """In every form of a request; the scores are those with any prompt."""
    async with serve(metrics=TABLES) as client:
        answer = await client.post("/score", json={"metrics": FREE, **body})
        same = {"metrics": FREE, "image": RED, "prompt": "a red square"}
        prompted = (await client.post("/score", json=same)).json()["results"][0]["scores"]

    assert 200 == answer.status_code, answer.text
    first = answer.json()["results"][0]
    assert first["scores"].items() <= prompted.items()
    assert "artifact" in first["scores"]
    assert not answer.json()["partial"]


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({"items": [{"image": RED}, {"image": RED, "prompt": "a"}]}, ["/items/0/prompt"]),
        ({"items": [{"image": RED, "metrics": FREE}, {"image": RED}]}, ["/items/1/prompt"]),
        ({"image": RED}, ["/prompt"]),
        ({"images": [RED, BLUE]}, ["/prompt"]),
    ],
    ids=["items", "metrics of its own", "image", "images"],
)
async def test_one_metric_that_reads_the_prompt_rejects_a_request_without_it(serve, fakes, body, pointers):
    """With the prompt's place, once, and the names of such metrics; no model is called."""
    async with serve(metrics=TABLES) as client:
        metrics = ["aesthetic", "vqascore", "clipscore"]
        answer = await client.post("/score", json={"metrics": metrics, **body})

    faults = refused(answer, 422, "invalid")["errors"]
    assert pointers == [fault["pointer"] for fault in faults]
    assert {("missing", "is needed by vqascore, clipscore")} == {
        (fault["code"], fault["detail"]) for fault in faults
    }
    assert [] == [*fakes["aesthetic"].calls, *fakes["vqa"].calls]


@pytest.mark.parametrize("body", [{"items": [{"image": RED, "prompt": " "}]}, {"image": RED, "prompt": ""}])
async def test_an_empty_prompt_is_still_rejected(serve, body):
    """It stands for a prompt that was lost, and none is sent as null or not at all."""
    async with serve(metrics=TABLES) as client:
        answer = await client.post("/score", json={"metrics": FREE, **body})

    assert refused(answer, 422, "invalid")["errors"][0]["pointer"].endswith("/prompt")


async def test_pictures_are_ranked_without_a_prompt_likewise(serve):
    async with serve(metrics=TABLES) as client:
        ranked = await client.post("/rank", json={"images": [RED, BLUE], "metric": "aesthetic"})
        cascade = {"metric": "vqascore", "keep": 1}
        body = {"images": [RED, BLUE], "metric": "aesthetic", "cascade": cascade}
        refusal = await client.post("/rank", json=body)

    assert {0, 1} == {place["index"] for place in ranked.json()["ranking"]}
    [fault] = refused(refusal, 422, "invalid")["errors"]
    assert ("/prompt", "is needed by vqascore") == (fault["pointer"], fault["detail"])


async def test_a_composite_reads_the_prompt_if_a_part_does(serve):
    """And `GET /models` lists which metrics do."""
    composites = {
        "beauty": {"aesthetic": {"weight": 1}, "artifact": {"weight": 1}},
        "both": {"aesthetic": {"weight": 1}, "vqascore": {"weight": 1}},
        "alike": {"aesthetic": {"weight": 1}, "clip_i": {"weight": 1}},
    }
    async with serve(metrics=TABLES, composites=composites) as client:
        scored = await client.post("/score", json={"image": RED, "metrics": ["beauty"]})
        refusal = await client.post("/score", json={"image": RED, "metrics": ["both"]})
        listed = (await client.get("/models")).json()["metrics"]

    assert 200 == scored.status_code, scored.text
    assert "/prompt" == refused(refusal, 422, "invalid")["errors"][0]["pointer"]
    assert {"aesthetic", "artifact", "safety", "beauty", "clip_i", "alike"} == {
        name for name, metric in listed.items() if not metric["reads_prompt"]
    }
    assert {"clip_i": "references", "alike": "references"}.items() <= {
        name: metric.get("needs", "") for name, metric in listed.items()
    }.items()


async def test_a_form_needs_no_prompt_either(serve):
    async with serve(metrics=TABLES) as client:
        answer = await client.post("/score", data={"metrics": "artifact"}, files={"image": png()})

    assert {"artifact"} == answer.json()["results"][0]["scores"].keys()
