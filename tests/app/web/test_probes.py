"""What probes, trainers and Prometheus see."""

import asyncio
import json
import logging
import re

import pytest

import service
from models.core.calls import ImageCall
from service.metrics.common.registry import metrics
from service.observability.instruments import STAGES
from service.observability.logs import JsonLines
from tests.support.app import service_of
from tests.support.handles import until
from tests.support.pictures import item

pytestmark = pytest.mark.anyio

GECKO = "all questions, also those that the prompt does not entail"
TEXT = "text as the VQA model sees it"
OF_THE_CLIP = ("clipscore", "refclipscore", "clip_i")
OF_THE_VQA = (
    "vqascore",
    "dsg",
    "gecko",
    "skills",
    "soft_tifa",
    "tifa",
    "vq2",
    "judge",
    "checklist",
)  # metrics that ask a VQA model


def reader(text):
    """The value of a series in the text that Prometheus scrapes."""

    def value(series):
        return float(re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)[1])

    value.text = text
    return value


async def test_models_metrics_and_limits_are_told(serve):
    """GET /models: roles, ids, revisions, what each metric is and asks, limits."""
    async with serve() as client:
        told = (await client.get("/models")).json()

    metrics = told["metrics"]
    assert {"clip", "vqa", "questions"} == {model["role"] for model in told["models"]}
    assert {*OF_THE_CLIP, *OF_THE_VQA} == metrics.keys()
    assert '√(P("Yes")·P("</s>"|"Yes"))' == metrics["vqascore"]["formula"]
    assert (["vqa"], ["questions"]) == (metrics["dsg"]["roles"], metrics["dsg"]["may_use"])
    assert ["vqa", "questions"] == metrics["dsg"]["models"]
    only = {name: metric["only"] for name, metric in metrics.items() if "only" in metric}
    assert {"gecko": GECKO, "skills": TEXT, "tifa": 'answers "choices", and not "free_form"'} == only


async def test_every_metric_is_told_with_its_options_and_those_not_served_with_the_reason(serve):
    """GET /models has all that are declared."""
    async with serve() as client:
        told = (await client.get("/models")).json()

    declared = {name for name in (*told["metrics"], *told["absent"]) if "." not in name}  # no outputs
    assert {*metrics()} == declared
    assert {"frames": "mean", "share": 0.5, "samples": None, "text": None} == told["absent"]["ocr"]["options"]
    assert "it needs a model in the role ocr" == told["absent"]["ocr"]["reason"]
    assert ("probability", None) == (
        told["metrics"]["vqascore"]["options"]["output"],
        told["metrics"]["vqascore"]["options"]["question"],
    )


async def test_an_unknown_option_lists_those_there_are(serve):
    """In the sentence of the error, which people see in a terminal."""
    body = {"items": [item()], "metrics": ["clipscore"], "options": {"clipscore": {"sclae": "hps"}}}
    async with serve() as client:
        [fault] = (await client.post("/score", json=body)).json()["errors"]

    assert (
        "there is no such field; there are frames, prefix, samples, scale, share; did you mean scale?"
        == fault["detail"]
    )


async def test_every_limit_of_a_request_is_told_and_holds(serve):
    """GET /models has what a client must keep to, and one more is refused."""
    async with serve(server={"max_items": 3}) as client:
        limits = (await client.get("/models")).json()["limits"]
        good = item()
        items = {
            "items": [good] * (limits["max_items"] + 1),
            "frames": [item(image=[good["image"]] * (limits["max_frames"] + 1))],
            "prompt": [item("a" * (limits["max_prompt_characters"] + 1))],
        }
        questions = [{"id": n, "text": f"{n}?"} for n in range(1, limits["max_questions"] + 2)]
        long = [{"id": 1, "text": "?" * (limits["max_question_characters"] + 1)}]
        bodies = [{"items": each} for each in items.values()]
        bodies += [{"items": [good], "options": {"dsg": {"question_set": own}}} for own in (questions, long)]
        bodies += [{"items": [good], "timeout_ms": limits["max_timeout_ms"] + 1}]
        answers = [(await client.post("/score", json=body)).status_code for body in bodies]

    assert [422] * len(bodies) == answers
    assert 3 == limits["max_items"]
    assert {"body_limit_mb", "body_timeout_s", "keep_alive_s", "default_timeout_ms"} <= limits.keys()
    assert {"max_pixels", "max_side", "max_image_bytes", "image_formats", "image_urls"} <= limits.keys()
    assert {"max_json_values", "lanes"} <= limits.keys()


async def test_a_metric_that_lacks_a_model_it_may_use_says_what_is_left(serve, fakes):
    """Without a question LLM `dsg` is ready, for questions that are pinned or sent along."""
    del fakes["questions"]
    async with serve() as client:
        told = (await client.get("/models")).json()["metrics"]["dsg"]
        roster = (await client.get("/health")).json()["rewards"]

    assert (True, ["vqa"]) == (told["ready"], told["models"])
    assert "question sets imported, pinned or sent along" == told["only"]
    assert ["ready"] == roster["dsg"]


async def test_only_metrics_whose_models_serve_are_on_the_roster(serve):
    """A trainer looks for a key of `rewards`; without a model that it may use, a metric is degraded."""
    async with serve() as client:
        handles = service_of(client).runtime.handles
        for name in ("vqa", "questions"):
            handles[name].backend.presence.change("unloaded")
        told = (await client.get("/health")).json()
        metrics = (await client.get("/models")).json()["metrics"]
        handles["vqa"].backend.presence.change("loaded")
        again = (await client.get("/health")).json()

    assert {key: ["ready"] for key in OF_THE_CLIP} == told["rewards"]
    away = "has been taken away (unloaded)"
    assert {key: [f"models.vqa: {away}"] for key in OF_THE_VQA} == told["not_ready"]
    assert {*OF_THE_CLIP} == {name for name, metric in metrics.items() if metric["ready"]}
    assert ({*OF_THE_CLIP, "vqascore", "judge", "checklist"}, {}) == (
        again["rewards"].keys(),
        again["not_ready"],
    )
    assert f"the questions model (models.questions): {away}" == again["degraded"]["dsg"]


async def test_a_metric_without_its_model_is_not_on_offer(serve, fakes):
    """Without a CLIP there is no clipscore, and asking for it says what there is."""
    del fakes["clip"]
    async with serve() as client:
        roster = (await client.get("/health")).json()["rewards"]
        refused = await client.post("/score", json={"items": [item()], "metrics": ["clipscore"]})

    assert {key: ["ready"] for key in OF_THE_VQA} == roster
    assert (422, "unknown_metric") == (refused.status_code, refused.json()["code"])
    assert "vqascore, checklist, dsg" in refused.json()["detail"]


async def test_prometheus_gets_no_series_of_what_is_not_served(serve):
    """Of another metric, of a status that a route does not have, or of the time when a series was made."""
    async with serve() as client:
        text = (await client.get("/metrics")).text
    series = [line for line in text.splitlines() if not line.startswith("#")]

    assert not [line for line in series if "_created" in line]
    assert {*OF_THE_VQA, *OF_THE_CLIP} == {*re.findall(r'scoregate_score_count{metric="(\w+)"}', text)}
    assert {*OF_THE_VQA, *OF_THE_CLIP} == {*re.findall(r'scoregate_scores_total{metric="(\w+)"', text)}
    assert "429" in re.findall(r'requests_total{code="(\d+)",route="/score"}', text)
    assert not {"404", "422"} & {*re.findall(r'requests_total{code="(\d+)",route="/livez"}', text)}


async def test_probes_answer(serve):
    """Alive, ready and healthy are three questions."""
    async with serve() as client:
        answers = [(await client.get(path)).json() for path in ("/livez", "/readyz", "/health")]

    assert {"status": "ok"} == answers[0]
    assert answers[1]["ready"]
    assert "ok" == answers[2]["status"]


async def test_a_stalled_device_is_not_alive(serve, fakes):
    """Work waiting and no batch finished for `stall_s`: 503."""
    async with serve(server={"stall_s": 1e-6}) as client:
        fakes["vqa"].hold.clear()
        scoring = asyncio.create_task(client.post("/score", json={"items": [item()]}))
        await until(lambda: fakes["vqa"].held)
        answer = await client.get("/livez")
        fakes["vqa"].hold.set()
        await scoring

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
        value = reader((await client.get("/metrics")).text)

    assert 1 == value('scoregate_requests_total{code="200",route="/score"}')
    assert 1 == value('scoregate_requests_total{code="404",route="other"}')
    assert 1 == value('scoregate_request_duration_seconds_count{lane="bulk",route="/score"}')
    assert 0 == value('scoregate_request_duration_seconds_count{lane="interactive",route="/score"}')
    assert 1 == value('scoregate_request_duration_seconds_count{lane="none",route="other"}')
    assert 1 == value('scoregate_calls_total{lane="bulk",model="vqa",result="ok"}')
    assert 1 == value('scoregate_queue_wait_seconds_count{lane="bulk",model="vqa"}')
    assert 1 == value('scoregate_batch_size_count{model="vqa"}')
    assert 1 == value('scoregate_batch_duration_seconds_count{model="vqa"}')
    assert 1 == value('scoregate_stage_duration_seconds_count{lane="bulk",stage="decode"}')
    assert 1 == value('scoregate_stage_duration_seconds_count{lane="bulk",stage="total"}')
    assert 0 == value('scoregate_queue_depth{lane="bulk",model="vqa"}')
    assert 1 == value('scoregate_scores_total{metric="vqascore",result="ok"}')
    assert "wp-login" not in value.text


async def test_scores_are_counted_by_what_came_of_them(serve, fakes):
    """A bad picture is the caller's, a model's fault is ours; only scores are in the histogram."""
    items = [item(), item(image="aGk=")]
    async with serve() as client:
        fakes["clip"].fault = lambda call: RuntimeError("no") if isinstance(call, ImageCall) else None
        body = {"items": items, "metrics": ["vqascore", "clipscore"]}
        answer = (await client.post("/score", json=body)).json()
        value = reader((await client.get("/metrics")).text)

    score = answer["results"][0]["scores"]["vqascore"]
    counted = {
        (metric, result): value(f'scoregate_scores_total{{metric="{metric}",result="{result}"}}')
        for metric in ("vqascore", "clipscore")
        for result in ("ok", "invalid", "refused", "late", "error")
    }
    assert {
        ("vqascore", "ok"),
        ("vqascore", "invalid"),
        ("clipscore", "error"),
        ("clipscore", "invalid"),
    } == {key for key, count in counted.items() if count}
    assert (1, score) == (
        value('scoregate_score_count{metric="vqascore"}'),
        pytest.approx(value('scoregate_score_sum{metric="vqascore"}')),
    )


async def test_pixels_are_shown_while_they_are_held(serve, fakes):
    """Bytes of the budget that a request has, and none afterwards."""
    async with serve(images={"max_pixels": 1000, "decoded_budget_mb": 1}) as client:
        fakes["vqa"].hold.clear()
        scoring = asyncio.create_task(client.post("/score", json={"items": [item()]}))
        while not fakes["vqa"].held:
            await asyncio.sleep(0)
        during = reader((await client.get("/metrics")).text)
        fakes["vqa"].hold.set()
        await scoring
        after = reader((await client.get("/metrics")).text)

    assert 2**20 == during("scoregate_pixel_budget_bytes")
    assert 16 * 16 * 3 <= during("scoregate_pixels_held_bytes") <= 2**20
    assert 0 == after("scoregate_pixels_held_bytes")


async def test_the_process_and_its_version_are_shown(serve):
    """What Prometheus' own client knows of a process, and which build it is."""
    async with serve() as client:
        value = reader((await client.get("/metrics")).text)

    assert 1 == value(f'scoregate_build_info{{version="{service.__version__}"}}')
    assert value("process_resident_memory_bytes") > 2**20
    assert value("process_open_fds") > 0
    assert "python_gc_collections_total" in value.text


async def test_the_access_line_has_the_stages(serve, caplog):
    """Where the time of one request went, in milliseconds; a refused request has none."""
    caplog.set_level(logging.INFO)
    async with serve() as client:
        answer = (await client.post("/score", json={"items": [item()], "priority": "bulk"})).json()
        await client.post("/score", json={})

    ours = [record for record in caplog.records if record.name == "scoregate.access"]
    scored, refused = [json.loads(JsonLines().format(record)) for record in ours]
    assert "bulk" == scored["lane"]
    assert {**scored["stages"], "total": answer["timings_ms"]["total"]} == answer["timings_ms"]
    assert scored["stages"].keys() == set(STAGES)
    assert not {"lane", "stages"} & refused.keys()


async def test_the_openapi_document_is_served(serve):
    """With the bodies that the routes read themselves."""
    async with serve() as client:
        document = (await client.get("/openapi.json")).json()

    body = document["paths"]["/score"]["post"]["requestBody"]["content"]
    assert {"application/json", "multipart/form-data"} == body.keys()
    assert "ScoreRequest" in document["components"]["schemas"]
