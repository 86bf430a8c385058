"""What an answer warns of: a sentence for people, and at the same place a code for programs."""

import numpy as np
import pytest

from models.core.outcomes import Embedding
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.metrics.common.registry import metrics
from service.observability.notes import Code
from tests.support.films import film
from tests.support.pictures import b64, item, png

pytestmark = pytest.mark.anyio

MEAN = {"options": {"vqascore": {"frames": "mean"}}}


async def answered(client, body, path="/score"):
    answer = await client.post(path, json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()


async def test_a_metric_that_looks_at_all_frames_has_no_warning_beside_one_that_does_not(serve):
    """Each answers for itself."""
    body = {"items": [item(image=b64(film()))], "metrics": ["vqascore", "clipscore"], **MEAN}
    async with serve() as client:
        answer = await answered(client, body)

    assert [{"code": "frames_ignored", "item": 0, "metric": "clipscore"}] == answer["warning_codes"]


async def test_sentences_and_codes_have_one_order_that_of_the_request(serve, fakes, monkeypatch):
    """What is about the whole request goes first, and names neither an item nor a metric."""

    def truncated(self, call):
        return Embedding(np.array([1, 0], np.float32), truncated=True)

    monkeypatch.setattr(type(fakes["clip"]), "answer", truncated)
    pictures = [png(), film()] + [png()] * 9
    body = {"items": [item(image=b64(each)) for each in pictures], "metrics": ["vqascore", "clipscore"]}
    models = {"clip": {"family": "fake"}, "vqa": {"family": "clip_flant5"}}
    del fakes["questions"]
    async with serve(models=models) as client:
        answer = await answered(client, body)

    codes = [(each["code"], each.get("item"), each.get("metric")) for each in answer["warning_codes"]]
    cut = [("prompt_truncated", number, "clipscore") for number in range(11)]
    ignored = [("frames_ignored", 1, metric) for metric in ("vqascore", "clipscore")]
    assert [("demo_model", None, None), cut[0], *ignored, *cut[1:]] == codes
    assert len(codes) == len(answer["warnings"])
    for sentence, (_, number, metric) in zip(answer["warnings"], codes, strict=True):
        assert number is None or sentence.startswith(f"item {number}, {metric}: ")


async def of_a_plugin(item: Item, models: Models, options: MetricOptions) -> Score:
    """Warns in words of its own, twice in the same."""
    return Score(0.5, {}, warnings=("the picture is dull", "the picture is dull"))


async def test_a_sentence_of_a_plug_ins_own_has_the_code_that_says_so(serve, monkeypatch):
    """Plug-ins give plain sentences."""
    own = {**metrics(), "dull": Metric("dull", of_a_plugin)}
    monkeypatch.setattr("service.wiring.bootstrap.metrics", lambda: own)
    async with serve() as client:
        answer = await answered(client, {"items": [item()], "metrics": ["dull"]})

    assert ["item 0, dull: the picture is dull"] == answer["warnings"]
    assert [{"code": "of_the_metric", "item": 0, "metric": "dull"}] == answer["warning_codes"]


async def test_a_warning_of_a_composites_part_keeps_its_code(serve):
    """And the sentence names the part."""
    async with serve(composites={"reward": {"vqascore": {"weight": 1}}}) as client:
        body = {"items": [item(image=b64(film()))], "metrics": ["reward"]}
        answer = await answered(client, body)

    assert [{"code": "frames_ignored", "item": 0, "metric": "reward"}] == answer["warning_codes"]


async def test_warnings_are_counted_by_code(serve):
    """Every code has a series from the start."""
    async with serve() as client:
        await answered(client, {"items": [item(image=b64(film()))] * 2})
        shown = (await client.get("/metrics")).text

    assert 'scoregate_warnings_total{code="frames_ignored"} 2.0' in shown
    assert 'scoregate_warnings_total{code="prompt_truncated"} 0.0' in shown


async def test_the_openapi_document_describes_the_codes(serve):
    """For both answers that have them."""
    async with serve() as client:
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]

    assert all(code in schemas["WarningCode"]["properties"]["code"]["description"] for code in Code)
    assert ["code"] == schemas["WarningCode"]["required"]
    for answer in ("ScoreAnswer", "RankAnswer"):
        assert "warning_codes" in schemas[answer]["properties"]


@pytest.mark.parametrize("path", ["/score", "/rank"])
async def test_an_option_without_effect_is_told_with_its_item(serve, path):
    """Also if only an item's own options cause it, and in a part of a composite."""
    options = {"vqascore": {"normalization": "product"}}
    logit = {"vqascore": {"output": "logit"}}
    body = {"items": [item(), {**item(), "options": logit}], "metrics": ["vqascore"], "options": options}
    if path == "/rank":
        logits = {"vqascore": options["vqascore"] | logit["vqascore"]}
        body = {"prompt": "a", "images": [b64(png())], "metric": "vqascore", "options": logits}
    async with serve(
        composites={"reward": {"vqascore": {"weight": 1.0, **options["vqascore"], **logit["vqascore"]}}}
    ) as client:
        answer = await answered(client, body, path)
        part = await answered(client, {"items": [item()], "metrics": ["reward"]})

    warned = {"code": "option_unused", "item": 0 if path == "/rank" else 1, "metric": "vqascore"}
    assert [warned] == answer["warning_codes"]
    assert answer["warnings"][0].endswith("the option normalization has no effect with this output")
    assert [{"code": "option_unused", "item": 0, "metric": "reward"}] == part["warning_codes"]
    assert "vqascore: the option normalization" in part["warnings"][0]
