"""What an answer warns of: a sentence for people, and at the same place a code for programs."""

from dataclasses import replace

import numpy as np
import PIL.Image
import pytest

from models.core.outcomes import Embedding
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.registry import metrics
from service.observability.notes import Code
from tests.support.films import film
from tests.support.pictures import b64, item, png, saved

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


async def test_sentences_and_codes_have_one_order_that_of_the_request(serve, fakes):
    """What is about the whole request goes first, and names neither an item nor a metric."""
    fakes["clip"].answer = lambda call: Embedding(np.array([1, 0], np.float32), truncated=True)
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


@pytest.mark.parametrize(
    ("picture", "code", "said"),
    [
        (PIL.Image.new("RGBA", (8, 8), (0, 200, 0, 0)), "alpha_ignored", "transparency"),
        (PIL.Image.new("I;16", (8, 8), 3000), "grey16_clipped", "more than 8 bits"),
    ],
)
async def test_what_rgb_of_8_bits_does_not_show_is_warned_about(serve, picture, code, said):
    """Of that item alone, under each metric."""
    pictures = [b64(png()), b64(saved(picture, "PNG"))]
    body = {"items": [item(image=each) for each in pictures], "metrics": ["vqascore", "clipscore"]}
    async with serve() as client:
        answer = await answered(client, body)

    assert [{"code": code, "item": 1, "metric": metric} for metric in body["metrics"]] == answer[
        "warning_codes"
    ]
    assert all(said in text for text in answer["warnings"])


async def test_unknown_tokens_are_warned_about_with_their_share(serve, fakes):
    """The largest of the metric's calls, also from the cache; no other item or metric has it."""
    answer = fakes["vqa"].answer
    shares = {"foreign": 0.25, "half foreign": 0.125}

    def counted(call):
        share = max((share for text, share in shares.items() if f'"{text}"' in call.question), default=0.0)
        return replace(answer(call), unknown=share)

    fakes["vqa"].answer = counted
    prompts = ["a square", "foreign", "half foreign"]
    body = {"items": [item(prompt) for prompt in prompts], "metrics": ["vqascore", "clipscore"]}
    async with serve() as client:
        first, second = [await answered(client, body) for _ in range(2)]

    expected = [
        {"code": "unknown_tokens", "item": 1, "metric": "vqascore", "share": 0.25},
        {"code": "unknown_tokens", "item": 2, "metric": "vqascore", "share": 0.125},
    ]
    assert expected == first["warning_codes"] == second["warning_codes"]
    assert first["warnings"][0].startswith("item 1, vqascore: 25% of the tokens")


async def of_a_plugin(item: Item, models: ModelCalls, options: MetricOptions) -> Score:
    """Warns in words of its own, twice in the same."""
    return Score(0.5, {}, warnings=("the picture is dull", "the picture is dull"))


@pytest.mark.parametrize("parts", [{"metrics": lambda: {**metrics(), "dull": Metric("dull", of_a_plugin)}}])
async def test_a_sentence_of_a_plug_ins_own_has_the_code_that_says_so(serve):
    """Plug-ins give plain sentences."""
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
