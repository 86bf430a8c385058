"""`POST /rank`: pictures for one prompt in order, and which of them to accept."""

import json

import numpy as np
import pytest

from models.core.outcomes import Embedding
from tests.support.app import forecast
from tests.support.leaps import out_of_time
from tests.support.pictures import b64, png
from tests.support.refusals import JSON, SECRET, refused

pytestmark = pytest.mark.anyio

COLOURS = ("red", "blue", "green", "white", "black", "yellow")
PICTURES = [b64(png(colour)) for colour in COLOURS]
CASCADE = {"metric": "clipscore", "keep": 2}
TIMEOUT_MS = 30_000


async def rank(client, images=PICTURES, **fields):
    return await client.post("/rank", json={"prompt": f"a red {SECRET}", "images": images, **fields})


async def scores(client, metric):
    """What /score says of the pictures, in order."""
    body = {"prompt": f"a red {SECRET}", "images": PICTURES, "metrics": [metric]}
    return [each["scores"][metric] for each in (await client.post("/score", json=body)).json()["results"]]


def descending(values, indices=None):
    indices = range(len(values)) if indices is None else indices
    return sorted(indices, key=lambda index: -values[index])


async def test_the_ranking_has_the_scores_of_score_best_first(serve):
    """With the names that the contract gives them."""
    async with serve() as client:
        answer = (await rank(client)).json()
        plain = await scores(client, "vqascore")

    assert {"request_id", "ranking", "models", "provenance", "timings_ms"} == answer.keys()
    assert descending(plain) == [place["index"] for place in answer["ranking"]]
    for place in answer["ranking"]:
        score = plain[place["index"]]
        assert {
            "score": score,
            "decided_by": "vqascore",
            "accepted": True,
            "scores": {"vqascore": score},
        } == {name: value for name, value in place.items() if name != "index"}
    assert {"vqa": "fake-vqa@1"} == answer["models"]


async def test_the_cheap_metric_decides_who_goes_on_and_the_metric_who_wins(serve, fakes):
    """The model of the metric sees the best `keep` alone; each place tells who decided."""
    async with serve() as client:
        answer = await rank(client, cascade=CASCADE)
        asked = len(fakes["vqa"].calls)
        cheap, dear = await scores(client, "clipscore"), await scores(client, "vqascore")

    kept = descending(cheap)[:2]
    places = answer.json()["ranking"]
    assert 2 == asked
    assert [*descending(dear, kept), *descending(cheap)[2:]] == [place["index"] for place in places]
    assert ["vqascore"] * 2 + ["clipscore"] * 4 == [place["decided_by"] for place in places]
    assert [True] * 2 + [False] * 4 == [place["accepted"] for place in places]
    for place in places:
        own = dear if place["decided_by"] == "vqascore" else cheap
        assert own[place["index"]] == place["score"]
        assert cheap[place["index"]] == place["scores"]["clipscore"]
    assert {"vqa", "clip"} == answer.json()["models"].keys()
    assert "model;dur=" in answer.headers["Server-Timing"]


@pytest.mark.shared
async def test_top_k_and_threshold_accept(serve):
    """Both have to be met."""
    async with serve() as client:
        plain = await scores(client, "vqascore")
        least = sorted(plain)[-2]
        accepted = [
            [place["index"] for place in (await rank(client, **how)).json()["ranking"] if place["accepted"]]
            for how in ({"top_k": 3}, {"threshold": least}, {"top_k": 1, "threshold": least})
        ]

    order = descending(plain)
    assert [order[:3], order[:2], order[:1]] == accepted


async def test_equal_scores_stand_in_the_order_of_the_request(serve, fakes):
    """Also where the cheap metric decides who goes on."""
    fakes["clip"].answer = lambda call: Embedding(np.array([1.0, 0.0], "float32"))
    async with serve() as client:
        answer = await rank(client, [PICTURES[0]] * 4, cascade=CASCADE)

    assert [0, 1, 2, 3] == [place["index"] for place in answer.json()["ranking"]]


async def test_pictures_may_be_file_parts_and_frames(serve):
    """As /score takes them."""
    body = {
        "prompt": "a red square",
        "images": [{"part": "a"}, [{"part": "a"}, {"part": "b"}]],
        "options": {"vqascore": {"output": "logit", "frames": "grid"}},
        "explain": True,
    }
    files = {"a": ("a.png", png()), "b": ("b.png", png("blue"))}
    async with serve() as client:
        answer = await client.post("/rank", data={"request": json.dumps(body)}, files=files)
        missing = await client.post("/rank", data={"request": json.dumps(body)}, files={"a": files["a"]})

    assert 200 == answer.status_code
    details = {place["index"]: place["details"]["vqascore"] for place in answer.json()["ranking"]}
    assert "logit" in details[0]
    assert 2 == details[1]["frames_used"]
    assert "/images/1/1/part" == refused(missing, 422, "invalid")["errors"][0]["pointer"]


@pytest.mark.shared
@pytest.mark.parametrize("metrics", [{}, {"cascade": CASCADE}], ids=["alone", "cascade"])
async def test_a_broken_picture_refuses_the_ranking_and_is_named(serve, metrics):
    """By default; all that are broken are named."""
    images = [PICTURES[0], "!", PICTURES[1], b64(b"no picture")]
    async with serve() as client:
        body = refused(await rank(client, images, **metrics), 422, "image_failed")

    assert [("/images/1", "not_base64"), ("/images/3", "image_undecodable")] == [
        (fault["pointer"], fault["code"]) for fault in body["errors"]
    ]


@pytest.mark.shared
async def test_a_broken_picture_is_last_and_costs_the_others_nothing(serve):
    """Neither a place in `keep` nor one in `top_k`."""
    images = ["!", *PICTURES[:3]]
    async with serve() as client:
        how = {"cascade": {"metric": "clipscore", "keep": 3}, "top_k": 3, "on_error": "pass"}
        places = (await rank(client, images, **how)).json()["ranking"]

    assert [True] * 4 == [place["accepted"] for place in places]
    assert ["vqascore"] * 3 == [place["decided_by"] for place in places[:3]]
    assert {"index", "accepted", "error", "scores"} == places[3].keys()
    assert (0, "clipscore", "not_base64") == (
        places[3]["index"],
        places[3]["error"]["metric"],
        places[3]["error"]["code"],
    )


async def test_a_picture_that_fails_in_the_second_stage_keeps_its_cheap_score(serve, fakes):
    """It has failed nevertheless, and stands behind those that were cut."""
    async with serve() as client:
        first = descending(await scores(client, "clipscore"))[0]
        digest = (await score_call(client, fakes, first)).image.digest
        fakes["vqa"].fault = lambda call: RuntimeError() if call.image.digest == digest else None
        answer = (await rank(client, cascade=CASCADE, on_error="block")).json()["ranking"]

    assert first == answer[-1]["index"]
    assert ("vqascore", "model_fault") == (answer[-1]["error"]["metric"], answer[-1]["error"]["code"])
    assert {"clipscore"} == answer[-1]["scores"].keys()


async def score_call(client, fakes, index):
    """What the model of vqascore is asked about a picture."""
    await client.post("/score", json={"prompt": "other", "images": [PICTURES[index]]})
    return fakes["vqa"].calls[-1]


async def test_a_deadline_that_passes_fails_the_ranking(serve, fakes):
    """Unless something else was asked for; the late pictures are named."""
    async with serve() as client:
        fakes["vqa"].hold.clear()
        answer = await out_of_time(
            rank(client, PICTURES[:2], cascade=CASCADE, timeout_ms=TIMEOUT_MS), lambda: fakes["vqa"].held
        )
        fakes["vqa"].hold.set()

    body = refused(answer, 504, "deadline_exceeded")
    assert {"/images/0", "/images/1"} == {fault["pointer"] for fault in body["errors"]}


@pytest.mark.parametrize(
    ("more", "accepted"), [({}, [True, True] + [False] * 4), ({"threshold": 0.0}, [False] * 6)]
)
async def test_the_cheap_metric_stands_in_after_the_deadline_where_that_is_asked_for(
    serve, fakes, more, accepted
):
    """The answer says so; what only the cheap metric has seen reaches no threshold."""
    async with serve() as client:
        cheap = await scores(client, "clipscore")
        fakes["vqa"].hold.clear()
        request = rank(client, cascade=CASCADE, on_deadline="cheap", timeout_ms=TIMEOUT_MS, **more)
        answer = await out_of_time(request, lambda: fakes["vqa"].held)
        fakes["vqa"].hold.set()

    places = answer.json()["ranking"]
    assert descending(cheap) == [place["index"] for place in places]
    assert {"clipscore"} == {place["decided_by"] for place in places}
    assert accepted == [place["accepted"] for place in places]
    assert ["the time ran out: 2 of 2 images are ordered by clipscore alone"] == answer.json()["warnings"]
    assert [{"code": "decided_by_cascade"}] == answer.json()["warning_codes"]


async def test_a_second_stage_that_would_be_late_is_not_begun(serve, fakes):
    """It is refused before any work, unless the cheap metric may stand in."""
    async with serve() as client:
        forecast(client, "vqa", wait_s=1000.0, drain_s=1.5)
        late = refused(await rank(client, cascade=CASCADE), 429, "lane_full")
        before = len(fakes["clip"].calls)
        cheap = await rank(client, cascade=CASCADE, on_deadline="cheap")
        metrics = (await client.get("/metrics")).text

    assert 'scoregate_rejections_total{reason="lane_full"} 2.0' in metrics
    assert (1.5, 0) == (late["retry_after_s"], before)
    assert {"clipscore"} == {place["decided_by"] for place in cheap.json()["ranking"]}
    assert [] == fakes["vqa"].calls


def body(**fields):
    return {"prompt": f"a red {SECRET}", "images": PICTURES[:2], **fields}


PLACES = [
    ({"images": PICTURES}, "/prompt"),
    ({"prompt": SECRET}, "/images"),
    (body(prompt=" "), "/prompt"),
    (body(images=[]), "/images"),
    (body(images=[PICTURES[0]] * 65), "/images"),
    (body(images=[PICTURES[0], 5]), "/images/1"),
    (body(metric=["vqascore"]), "/metric"),
    (body(metrics=["vqascore"]), "/metrics"),
    (body(items=[]), "/items"),
    (body(top_k=0), "/top_k"),
    (body(top_k=65), "/top_k"),
    (body(threshold="0.5"), "/threshold"),
    (body(threshold=True), "/threshold"),
    (body(cascade={"metric": "clipscore"}), "/cascade/keep"),
    (body(cascade={"metric": "clipscore", "keep": 0}), "/cascade/keep"),
    (body(cascade={"metric": "vqascore", "keep": 2}), "/cascade"),
    (body(cascade={"metric": "clipscore", "keep": 2, "to": 1}), "/cascade/to"),
    (body(on_error="ignore"), "/on_error"),
    (body(on_deadline="cheap"), "/on_deadline"),
    (body(on_deadline="cheap", cascade=None), "/on_deadline"),
    (body(priority="urgent"), "/priority"),
    (body(timeout_ms=0), "/timeout_ms"),
    (body(options={"clipscore": {"scale": "logit"}}), "/options/clipscore/scale"),
]


@pytest.mark.shared
@pytest.mark.parametrize(("wrong", "pointer"), PLACES, ids=[f"{n} {p}" for n, (_, p) in enumerate(PLACES)])
async def test_what_is_not_allowed_is_invalid_and_its_place_is_named(serve, fakes, wrong, pointer):
    """422, before any picture is looked at."""
    async with serve() as client:
        answer = await client.post("/rank", content=json.dumps(wrong), headers=JSON)

    assert [pointer] == [fault["pointer"] for fault in refused(answer, 422, "invalid")["errors"]]
    assert [] == fakes["vqa"].calls


@pytest.mark.shared
async def test_a_threshold_is_a_finite_number(serve):
    """1e999 is JSON, and reads as infinity."""
    text = json.dumps(body(threshold=0.5)).replace("0.5", "1e999")
    async with serve() as client:
        refused(await client.post("/rank", content=text, headers=JSON), 422, "invalid")


@pytest.mark.shared
async def test_metrics_that_are_not_served_are_named_at_their_places(serve):
    """Both."""
    async with serve() as client:
        answer = await rank(client, metric="pickscore", cascade={"metric": "bleu", "keep": 1})

    faults = refused(answer, 422, "unknown_metric")["errors"]
    assert ["/metric", "/cascade/metric"] == [fault["pointer"] for fault in faults]


async def test_rankings_have_instruments_of_their_own(serve):
    """By route and lane."""
    async with serve() as client:
        await rank(client, priority="bulk")
        text = (await client.get("/metrics")).text

    assert 'scoregate_requests_total{code="200",route="/rank"} 1.0' in text
    assert 'scoregate_request_duration_seconds_count{lane="bulk",route="/rank"} 1.0' in text
