"""What probes, trainers and Prometheus see."""

import re

import pytest

from service.serving.batcher.device import Device
from tests.conftest import item

pytestmark = pytest.mark.anyio


async def test_models_metrics_and_limits_are_told(serve):
    """GET /models: roles, ids, revisions, limits."""
    async with serve() as client:
        told = (await client.get("/models")).json()

    assert {"clip", "vqa", "questions"} == {model["role"] for model in told["models"]}
    assert {"vqascore", "clipscore", "dsg"} == told["metrics"].keys()
    assert 128 == told["limits"]["max_items"]


async def test_a_metric_without_its_model_is_not_on_offer(serve, fakes):
    """Without a CLIP there is no clipscore, and asking for it says what there is."""
    del fakes["clip"]
    async with serve() as client:
        roster = (await client.get("/health")).json()["rewards"]
        refused = await client.post("/score", json={"items": [item()], "metrics": ["clipscore"]})

    assert {"vqascore": ["ready"], "dsg": ["ready"]} == roster
    assert (422, "unknown_metric") == (refused.status_code, refused.json()["code"])
    assert "vqascore, dsg" in refused.json()["detail"]


async def test_probes_answer(serve):
    """Alive, ready and healthy are three questions."""
    async with serve() as client:
        answers = [(await client.get(path)).json() for path in ("/livez", "/readyz", "/health")]

    assert {"status": "ok"} == answers[0]
    assert answers[1]["ready"]
    assert "ok" == answers[2]["status"]


async def test_a_stalled_device_is_not_alive(serve, monkeypatch):
    """Work waiting and no batch finished for `stall_s`: 503."""
    async with serve() as client:
        monkeypatch.setattr(Device, "stalled_for", lambda self: 121.0)
        answer = await client.get("/livez")

    assert 503 == answer.status_code
    assert "Retry-After" in answer.headers


async def test_every_series_exists_before_it_moves(serve):
    """A rate over a series that has not moved is 0, not absent."""
    async with serve() as client:
        text = (await client.get("/metrics")).text

    for series in (
        'scoregate_calls_total{lane="bulk",model="vqa",result="error"} 0.0',
        'scoregate_queue_depth{lane="bulk",model="questions"} 0.0',
        'scoregate_rejections_total{reason="lane_full"} 0.0',
        'scoregate_question_llm_calls_total{result="invalid"} 0.0',
        'scoregate_model_ready{model="clip"} 1.0',
        'scoregate_requests_total{code="503",route="/score"} 0.0',
    ):
        assert series in text


async def test_instruments_move_with_the_work(serve):
    """A scored pair shows in every instrument of its way; raw paths never become labels."""
    async with serve() as client:
        await client.post("/score", json={"items": [item()], "priority": "bulk"})
        await client.get("/wp-login.php")
        text = (await client.get("/metrics")).text

    def value(series):
        return float(re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)[1])

    assert 1 == value('scoregate_requests_total{code="200",route="/score"}')
    assert 1 == value('scoregate_requests_total{code="404",route="other"}')
    assert 1 == value('scoregate_request_duration_seconds_count{route="/score"}')
    assert 1 == value('scoregate_calls_total{lane="bulk",model="vqa",result="ok"}')
    assert 1 == value('scoregate_queue_wait_seconds_count{lane="bulk",model="vqa"}')
    assert 1 == value('scoregate_batch_size_count{model="vqa"}')
    assert 1 == value('scoregate_batch_duration_seconds_count{model="vqa"}')
    assert 1 == value('scoregate_stage_duration_seconds_count{stage="decode"}')
    assert 0 == value('scoregate_queue_depth{lane="bulk",model="vqa"}')
    assert "wp-login" not in text


async def test_the_openapi_document_is_served(serve):
    """With the bodies that the routes read themselves."""
    async with serve() as client:
        document = (await client.get("/openapi.json")).json()

    body = document["paths"]["/score"]["post"]["requestBody"]["content"]
    assert {"application/json", "multipart/form-data"} == body.keys()
    assert "ScoreRequest" in document["components"]["schemas"]
