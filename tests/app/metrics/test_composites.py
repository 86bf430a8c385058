"""Composites: metrics that a profile makes of others."""

import re
import threading

import pytest

from models.core.calls import ImageCall
from service.metrics.common.contract import Metric, Score
from service.metrics.common.registry import own
from tests.support.app import service_of
from tests.support.fakes import FakeClip
from tests.support.leaps import out_of_time
from tests.support.pictures import b64, item, png

REWARD = {
    "vqascore": {"weight": 0.6},
    "pickscore": {"weight": 0.4, "scale": "logit", "divide_by": 26},
}
PICKS = {"pickscore": {"model": "picks"}}


@pytest.fixture
def fakes(fakes):
    """A CLIP for `pickscore` beside the usual models."""
    return fakes | {"picks": FakeClip()}


async def scored(client, *metrics, prompt="a red dog", **more):
    """The answer for one item."""
    body = {"items": [item(prompt)], "metrics": list(metrics), "explain": True, **more}
    return (await client.post("/score", json=body)).json()


@pytest.mark.anyio
async def test_a_composite_is_the_sum_of_its_parts(serve):
    """0.6 · vqascore + 0.4 · pickscore's logit / 26, with each part in the details."""
    options = {"pickscore": {"scale": "logit"}}
    async with serve(metrics=PICKS, composites={"reward": REWARD}) as client:
        answer = await scored(client, "reward", "vqascore", "pickscore", options=options)

    [result] = answer["results"]
    scores, parts = result["scores"], result["details"]["reward"]["parts"]
    assert 0.6 * scores["vqascore"] + 0.4 * scores["pickscore"] / 26 == pytest.approx(scores["reward"])
    assert {"vqascore", "pickscore"} == parts.keys()
    assert {"weight": 0.4, "subtract": 0, "divide_by": 26, "score": scores["pickscore"]}.items() <= parts[
        "pickscore"
    ].items()
    assert 0.4 * scores["pickscore"] / 26 == pytest.approx(parts["pickscore"]["contribution"])
    assert result["details"]["vqascore"] == parts["vqascore"]["details"]
    assert {"vqa", "picks"} == answer["models"].keys()


@pytest.mark.anyio
async def test_the_provenance_of_a_composite_has_its_parts(serve):
    """As in `GET /models`; other metrics have none."""
    async with serve(metrics=PICKS, composites={"reward": REWARD}) as client:
        listed = (await client.get("/models")).json()["metrics"]["reward"]["parts"]
        found = [
            (await scored(client, *metrics))["provenance"] for metrics in (["reward", "vqascore"], ["dsg"])
        ]

    assert {"reward": listed} == found[0]["composites"]
    assert (0.4, {"scale": "logit"}) == (listed["pickscore"]["weight"], listed["pickscore"]["options"])
    assert "composites" not in found[1]


@pytest.mark.anyio
async def test_a_part_asks_nothing_that_is_asked_beside_it(serve, fakes):
    """Each part's own models answer once, whether the request names the metric too or not."""
    async with serve(metrics=PICKS, composites={"reward": REWARD}) as client:
        await scored(client, "reward", "vqascore", "pickscore", "clipscore")
        again = await scored(client, "reward", prompt="a red dog")

    assert (1, 2, 2) == tuple(len(fakes[name].calls) for name in ("vqa", "picks", "clip"))
    assert "hit" == again["results"][0]["cache"]["reward"]


@pytest.mark.anyio
async def test_a_part_that_fails_is_the_composites_failure(serve, fakes):
    """Never a smaller sum; the error keeps its code and names the part."""
    async with serve(metrics=PICKS, composites={"reward": REWARD}) as client:
        fakes["picks"].fault = lambda call: RuntimeError("no") if isinstance(call, ImageCall) else None
        answer = await scored(client, "reward", "vqascore", "pickscore")

    [result] = answer["results"]
    assert {"vqascore"} == result["scores"].keys()
    assert result["errors"]["pickscore"]["code"] == result["errors"]["reward"]["code"]
    assert f"pickscore: {result['errors']['pickscore']['detail']}" == result["errors"]["reward"]["detail"]


@pytest.mark.anyio
async def test_a_composite_that_runs_out_of_time_says_in_which_stage(serve, fakes):
    """That of the part that was waited for."""
    async with serve(metrics=PICKS, composites={"reward": REWARD}) as client:
        fakes["vqa"].hold.clear()
        answer = await out_of_time(scored(client, "reward", timeout_ms=30_000), lambda: fakes["vqa"].held)
        fakes["vqa"].hold.set()

    assert "deadline_exceeded" == answer["code"]
    assert re.search(r"in the stage (decode|queue|model)$", answer["detail"])


async def whereabouts(item, models, options):
    """Has the thread's name in its details."""
    return Score(0.5, {"thread": threading.current_thread().name})


@pytest.mark.anyio
@pytest.mark.parametrize(
    "parts", [{"metrics": lambda: own() | {"whereabouts": Metric("whereabouts", whereabouts)}}]
)
async def test_a_part_that_asks_no_model_runs_on_a_cpu_thread(serve):
    """As it does by itself; the composite waits for it on the event loop."""
    async with serve(composites={"half": {"whereabouts": {"weight": 2}}}) as client:
        answer = await scored(client, "half")

    assert 1.0 == answer["results"][0]["scores"]["half"]
    [details] = answer["results"][0]["details"]["half"]["parts"].values()
    assert details["details"]["thread"].startswith("cpu-interactive")


@pytest.mark.anyio
async def test_a_composite_is_listed_wherever_a_metric_is(serve):
    """/models with its parts, /health, OpenAPI with no option but `frames`, and the instruments."""
    async with serve(metrics=PICKS, composites={"reward": REWARD}) as client:
        told = (await client.get("/models")).json()["metrics"]["reward"]
        roster = (await client.get("/health")).json()["rewards"]
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
        refused = await client.post("/score", json={"items": [item()], "options": {"reward": {"weight": 1}}})
        await scored(client, "reward")
        text = (await client.get("/metrics")).text

    logit = {"weight": 0.4, "subtract": 0, "divide_by": 26, "options": {"scale": "logit"}}
    plain = {"weight": 0.6, "subtract": 0, "divide_by": 1, "options": {}}
    assert {"vqascore": plain, "pickscore": logit} == told["parts"]
    assert "0.6·vqascore + 0.4·pickscore(scale=logit)/26" == told["formula"]
    assert (["vqa", "clip"], ["vqa", "picks"]) == (told["roles"], told["models"])
    assert ["ready"] == roster["reward"]
    assert "reward" in schemas["Options"]["properties"]
    assert (422, "/options/reward/weight") == (refused.status_code, refused.json()["errors"][0]["pointer"])
    assert 'scoregate_scores_total{metric="reward",result="ok"} 1.0' in text


@pytest.mark.anyio
async def test_a_composite_is_not_ready_while_a_part_is_not(serve):
    """`pickscore`'s model has gone: its composite is not on the roster, `vqascore` is."""
    async with serve(metrics=PICKS, composites={"reward": REWARD}) as client:
        service_of(client).runtime.handles["picks"].backend.presence.change("unloaded")
        told = (await client.get("/health")).json()

    assert ["models.picks: has been taken away (unloaded)"] == told["not_ready"]["reward"]
    assert "reward" not in told["rewards"]
    assert ["ready"] == told["rewards"]["vqascore"]


@pytest.mark.anyio
async def test_a_composite_whose_questions_nobody_writes_is_not_ready(serve, fakes, caplog):
    """Said at the start; a part with questions of its own needs no LLM."""
    del fakes["questions"]
    given = {"weight": 1, "question_set": [{"id": 1, "text": "is there a dog?"}]}
    tables = {"reward": {"dsg": {"weight": 1}}, "pinned": {"dsg": given}}
    async with serve(composites=tables) as client:
        told = (await client.get("/health")).json()
        listed = (await client.get("/models")).json()["metrics"]
        [result] = (await scored(client, "reward", "pinned"))["results"]

    [reason] = told["not_ready"]["reward"]
    assert reason.startswith("composites.reward.dsg: no model is configured for the role questions")
    assert 1 == caplog.messages.count(f"the composite reward has no scores: {reason}")
    assert "pinned" not in "".join(caplog.messages)
    assert (True, False, True) == tuple(listed[name]["ready"] for name in ("dsg", "reward", "pinned"))
    assert ["ready"] == told["rewards"]["pinned"]
    assert (["pinned"], ["reward"]) == (list(result["scores"]), list(result["errors"]))


@pytest.mark.anyio
async def test_the_parts_of_each_frame_are_added_up(serve):
    """Then the composite folds its frames, as any metric does."""
    frames = [b64(png("red")), b64(png("blue"))]
    async with serve(composites={"reward": {"vqascore": {"weight": -2}}}) as client:
        body = {"items": [{"prompt": "a dog", "image": frames}], "metrics": ["reward", "vqascore"]}
        [result] = (await client.post("/score", json=body)).json()["results"]

    assert -2 * result["scores"]["vqascore"] == pytest.approx(result["scores"]["reward"])
