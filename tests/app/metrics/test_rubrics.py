"""Rubrics of an operator and of a request: written answers, samples, repetitions, and metrics of outputs."""

import json
import tomllib
from math import log, sqrt
from statistics import stdev

import pytest

from models.core.calls import AnswerCall, LabelCall
from models.core.outcomes import Choices, Text
from service.metrics.rubrics.rubric import rubric_of
from tests.app.web.test_openapi import validator
from tests.support.app import service_of
from tests.support.pictures import b64, item, pixels, png
from tests.support.questions import noted, scored
from tests.support.rubrics import TWO_CALLS

pytestmark = pytest.mark.anyio
ITEM = item("make it red", source=b64(png("white")))
DATA = {"group": "colour"}
FIRST = json.dumps({"sc1": 4, "sc2": 9, "why": "it is red"})
SECOND = "Natural look: 9\npq2: 10"
COUNTER = "scoregate_refused_answers_total"


@pytest.fixture
def folder(tmp_path):
    """A folder of rubrics, with the rubric `two` of two calls, and others that a test adds."""

    def add(name, text):
        (tmp_path / "rubrics").mkdir(exist_ok=True)
        (tmp_path / "rubrics" / f"{name}.toml").write_text(text, "utf-8")
        return {"rubrics": [str(tmp_path / "rubrics")]}

    add("two", TWO_CALLS)
    return add


@pytest.fixture
def two(folder):
    return folder("two", TWO_CALLS)


@pytest.fixture
def writes(fakes):
    """Has the model write these texts about a call with a schema, and those otherwise, by the call's seed."""

    def write(first=(FIRST,), second=(SECOND,)):
        def answer(call):
            if not isinstance(call, AnswerCall):
                return type(fakes["vqa"]).answer(fakes["vqa"], call)
            texts = first if call.schema else second
            return Text(texts[call.seed % len(texts)])

        fakes["vqa"].answer = answer

    write()
    return write


def written(fakes):
    """The calls for written answers, by their seed and their text."""
    return sorted(
        (call for call in fakes["vqa"].calls if isinstance(call, AnswerCall)),
        key=lambda call: (call.seed, call.question),
    )


def refused(client):
    """How many answers were refused, by reason."""
    samples = service_of(client).instruments.refused_answers.collect()[0].samples
    return {s.labels["reason"]: s.value for s in samples if s.name == COUNTER and s.value}


async def test_the_score_is_the_formula_over_the_outputs_of_all_calls(serve, writes, fakes, two):
    """One greedy call each; details have every output, and the texts of both sides."""
    async with serve(judge=two) as client:
        result, warnings = await noted(client, "judge", ITEM, rubric="two", data=DATA)

    assert sqrt(4 * 9) == pytest.approx(result["scores"]["judge"])
    told, rubric = result["details"]["judge"], rubric_of("two", TWO_CALLS)
    assert ("two", rubric.digest) == (told["rubric"], told["digest"])
    assert [[FIRST], [SECOND]] == [call["written"] for call in told["calls"]]
    why = told["outputs"].pop("why")
    assert (None, ["it is red"]) == (why["value"], why["answers"])
    expected = {"sc1": 4, "sc2": 9, "pq1": 9, "pq2": 10}
    assert expected == {name: output["value"] for name, output in told["outputs"].items()}
    assert [] == warnings
    second, first = written(fakes)
    assert [call["question"] for call in told["calls"]] == [first.question, second.question]
    assert (first.temperature, first.seed, first.rubric) == (0, 0, rubric.digest)
    assert (rubric.calls[0].json_form, None) == (first.schema, second.schema)


async def test_a_call_sees_its_pictures_in_order_and_the_texts_of_the_item(serve, writes, fakes, two):
    """Pictures have numbers, and a prompt with a placeholder in it stays as it is."""
    async with serve(judge=two) as client:
        asked = item("{data.group} {x}", source=b64(png("white")))
        await scored(client, "judge", asked, rubric="two", data=DATA)

    second, first = written(fakes)
    caption, source = first.before
    assert ("Before:", (255, 255, 255)) == (caption, pixels(source).getpixel((0, 0)))
    assert (255, 0, 0) == pixels(first.image).getpixel((0, 0))
    beginning = 'The picture 1 was changed: "{data.group} {x}" (colour). Grade picture 2.\n'
    assert first.question.startswith(beginning)
    assert ((), first.image.digest) == (second.before, second.image.digest)


@pytest.mark.parametrize(
    ("asked", "options", "code", "said"),
    [
        (ITEM, {}, "invalid", "the rubric two needs data.group"),
        (item("red"), {"data": DATA}, "missing_picture", "the rubric two needs the item's source"),
    ],
)
async def test_an_item_without_what_the_rubric_needs_is_an_error(
    serve, writes, fakes, two, asked, options, code, said
):
    """Of that item alone, before any call."""
    async with serve(judge=two) as client:
        result = await scored(client, "judge", asked, rubric="two", **options)

    error = result["errors"]["judge"]
    assert code == error["code"]
    assert said in error["detail"]
    assert [] == written(fakes)


@pytest.mark.parametrize(
    ("first", "second", "reason", "said"),
    [
        (FIRST.replace("4", "11"), SECOND, "out_of_range", "sc1: 11 is not an integer from 0 to 10"),
        (FIRST + FIRST, SECOND, "several_objects", "more than one JSON object"),
        (FIRST.replace("4", '"four"'), SECOND, "not_a_number", "sc1: 'four' is not"),
        (FIRST, "Natural look: 9", "missing_output", "the output pq2 is missing"),
    ],
)
async def test_an_answer_without_the_form_is_an_error_with_its_beginning(
    serve, writes, two, first, second, reason, said
):
    """Repeated once, with another seed, and counted each time; never a score."""
    writes((first,), (second,))
    async with serve(judge=two) as client:
        result = await scored(client, "judge", ITEM, rubric="two", data=DATA)
        assert {reason: 2} == refused(client)

    error = result["errors"]["judge"]
    assert ({}, "answer_refused") == (result["scores"], error["code"])
    assert said in error["detail"]
    assert f"the answer begins: {(second if second != SECOND else first)[:80]!r}" in error["detail"]


async def test_a_repetition_with_another_seed_may_have_the_form(serve, writes, fakes, two):
    """Only the call that was refused is repeated."""
    writes(("I cannot say.", FIRST))
    async with serve(judge=two) as client:
        result = await scored(client, "judge", ITEM, rubric="two", data=DATA)
        assert {"not_json": 1} == refused(client)

    assert 6 == pytest.approx(result["scores"]["judge"])
    assert [0, 0, 1] == [call.seed for call in written(fakes)]
    assert [FIRST] == result["details"]["judge"]["calls"][0]["written"]


async def test_without_retries_nothing_is_repeated(serve, writes, fakes, folder):
    writes(("I cannot say.", FIRST))
    async with serve(judge=folder("two", TWO_CALLS.replace("retries = 1", ""))) as client:
        result = await scored(client, "judge", ITEM, rubric="two", data=DATA)

    assert "answer_refused" == result["errors"]["judge"]["code"]
    assert [0, 0] == [call.seed for call in written(fakes)]


async def test_several_samples_have_a_mean_and_a_spread(serve, writes, fakes, folder):
    """Each with a seed of its own, at a temperature above 0."""
    writes([FIRST.replace("4", grade) for grade in ("1", "4", "9")])
    async with serve(judge=folder("two", TWO_CALLS.replace("retries = 1", "samples = 3"))) as client:
        result = await scored(client, "judge", ITEM, rubric="two", data=DATA)

    told, scores = result["details"]["judge"], [3, 6, 9]
    assert scores == pytest.approx(told["samples"])
    assert (6, 3) == pytest.approx((result["scores"]["judge"], told["spread"]))
    grade = told["outputs"]["sc1"]
    assert ([1, 4, 9], 14 / 3, stdev([1, 4, 9])) == (
        grade["answers"],
        pytest.approx(grade["value"]),
        pytest.approx(grade["spread"]),
    )
    assert {(0, 1.0), (1, 1.0), (2, 1.0)} == {(call.seed, call.temperature) for call in written(fakes)}


async def test_an_output_of_several_samples_has_the_noise_of_their_mean(serve, writes, folder):
    """As the score has: pairs that differ by less are ties."""
    writes([FIRST.replace("4", grade) for grade in ("1", "4", "9")])
    body = {
        "prompt": "make it red",
        "images": [ITEM["image"], b64(png("lime"))],
        "source": ITEM["source"],
        "metric": "judge.sc1",
        "options": {"judge.sc1": {"rubric": "two", "data": DATA}},
        "explain": True,
    }
    async with serve(judge=folder("two", TWO_CALLS.replace("retries = 1", "samples = 3"))) as client:
        [pair] = (await client.post("/compare", json=body)).json()["pairs"]

    assert pair["details"]["noise"] == pytest.approx(stdev([1, 4, 9]) * (2 / 3) ** 0.5)


@pytest.mark.parametrize("read", ["expected", "both"])
async def test_grades_are_read_by_the_probabilities_of_their_labels(serve, fakes, folder, writes, read):
    """One call for each output; with `both` the score is that of the written answers."""
    shares = {"A": 0.5, "K": 0.5}

    def answer(call):
        if isinstance(call, LabelCall):
            return Choices(tuple((log(shares.get(label, 1e-300)),) for label in call.labels))
        return writing(call)

    writing = fakes["vqa"].answer
    fakes["vqa"].answer = answer
    text = TWO_CALLS.replace("retries = 1", f'read = "{read}"')
    async with serve(judge=folder("two", text)) as client:
        result = await scored(client, "judge", ITEM, rubric="two", data=DATA)

    told = result["details"]["judge"]
    assert (5, 6 if read == "both" else 5) == pytest.approx((told["expected"], result["scores"]["judge"]))
    assert 5 == pytest.approx(told["outputs"]["sc1"]["expected"])
    assert {"A": 0.5, "K": 0.5}.items() <= told["outputs"]["sc1"]["probabilities"].items()
    labelled = [call for call in fakes["vqa"].calls if isinstance(call, LabelCall)]
    assert 4 == len(labelled)
    assert all("alone" in call.question for call in labelled)


async def test_a_formula_without_a_value_is_an_error(serve, writes, folder):
    """A division by zero is not a score."""
    text = TWO_CALLS.replace("sqrt(min(sc1, sc2) * min(pq1, pq2))", "sc1 / (sc2 - 9) + pq1")
    async with serve(judge=folder("two", text)) as client:
        result = await scored(client, "judge", ITEM, rubric="two", data=DATA)

    error = result["errors"]["judge"]
    assert "unanswered" == error["code"]
    assert "the rubric two: sc1 / (sc2 - 9) + pq1 divides by zero" == error["detail"]


async def test_provenance_has_the_digest_of_the_rubric(serve, writes, two):
    """By name and digest, which a later request may name in turn."""
    digest = rubric_of("two", TWO_CALLS).digest
    body = {"items": [ITEM], "metrics": ["judge"], "options": {"judge": {"rubric": "two", "data": DATA}}}
    async with serve(judge=two) as client:
        first = (await client.post("/score", json=body)).json()
        shown = first["provenance"]["options"]["judge"]
        again = (await client.post("/score", json={**body, "options": {"judge": shown}})).json()

    assert f"two@{digest}" == shown["rubric"]
    assert first["results"][0]["scores"] == again["results"][0]["scores"]


async def test_rubrics_that_differ_are_other_calls(serve, writes, fakes, folder):
    """Their digest is part of a call's key, so nothing that was cached for one is taken for the other."""
    other = folder("other", TWO_CALLS.replace("min(pq1, pq2)", "pq1"))
    async with serve(judge=other) as client:
        for name in ("two", "two", "other"):
            await scored(client, "judge", ITEM, rubric=name, data=DATA)

    assert 4 == len(written(fakes))


async def test_an_output_has_a_metric_of_its_own_from_the_same_calls(serve, writes, fakes, two):
    """With the options of `judge`; nothing is written twice, and a refusal is counted once."""
    writes(("I cannot say.", FIRST))
    metrics = ["judge", "judge.sc1", "judge.pq2"]
    body = {"items": [ITEM], "metrics": metrics, "options": {"judge": {"rubric": "two", "data": DATA}}}
    async with serve(judge=two, cache={"scores": "off"}) as client:
        answer = (await client.post("/score", json={**body, "explain": True})).json()
        listed = (await client.get("/models")).json()["metrics"]
        assert {"not_json": 1} == refused(client)

    [result] = answer["results"]
    assert {"judge": 6, "judge.sc1": 4, "judge.pq2": 10} == pytest.approx(result["scores"])
    assert [0, 0, 1] == [call.seed for call in written(fakes)]
    assert "two" == result["details"]["judge.sc1"]["rubric"]
    assert [0, 10] == listed["judge.sc1"]["range"]
    assert {"judge.sc1", "judge.sc2", "judge.pq1", "judge.pq2"} == {n for n in listed if "." in n}


async def test_an_output_may_be_the_only_metric(serve, writes, two):
    """Its default is the first rubric that has it; options of its own are those of its name."""
    own = {"judge": {"rubric": "editing"}, "judge.sc1": {"data": DATA}}
    async with serve(judge=two) as client:
        for options in (own, {"judge.sc1": {"rubric": "two", "data": DATA}}):
            body = {"items": [ITEM], "metrics": ["judge.sc1"], "options": options}
            result = (await client.post("/score", json=body)).json()["results"][0]
            assert {"judge.sc1": 4} == result["scores"]
        body["options"] = {"judge": {"rubric": "editing"}}
        error = (await client.post("/score", json=body)).json()["results"][0]["errors"]["judge.sc1"]

    assert ("invalid", "the rubric editing has no output sc1") == (error["code"], error["detail"])


async def test_an_output_may_be_a_part_of_a_composite(serve, writes, two):
    """Named in quotes, with the options of the part."""
    part = {"weight": 0.5, "rubric": "two", "data": DATA}
    async with serve(judge=two, composites={"half": {"judge.sc1": part}}) as client:
        result = await scored(client, "half", ITEM)

    assert 2 == pytest.approx(result["scores"]["half"])


async def test_a_request_may_bring_a_rubric_where_the_settings_allow_it(serve, writes):
    """Its outputs are in the details, and no metric of theirs appears."""
    table = tomllib.loads(TWO_CALLS)
    async with serve(judge={"allow_inline": True}) as client:
        result = await scored(client, "judge", ITEM, rubric=table, data=DATA)
        listed = (await client.get("/models")).json()["metrics"]
        wrong = {**table, "score": "sc1 + x"}
        body = {"items": [ITEM], "metrics": ["judge"], "options": {"judge": {"rubric": wrong}}}
        refusal = await client.post("/score", json=body)

    assert 6 == pytest.approx(result["scores"]["judge"])
    assert rubric_of("x", TWO_CALLS).digest == result["details"]["judge"]["rubric"]
    assert 4 == result["details"]["judge"]["outputs"]["sc1"]["value"]
    assert not [name for name in listed if "." in name]
    [fault] = refusal.json()["errors"]
    assert (422, "/options/judge/rubric") == (refusal.status_code, fault["pointer"])
    assert "score: column 7: there is no x; there are sc1, sc2" in fault["detail"]


@pytest.mark.parametrize("inline", [True, False])
async def test_the_schema_of_requests_has_tables_where_they_are_allowed(serve, two, inline):
    """By name it lists those of the service, the operator's among them."""
    bodies = [
        {"items": [ITEM], "options": {"judge": {"rubric": rubric}}}
        for rubric in ("two", "editing", "unheard_of", tomllib.loads(TWO_CALLS), {"score": "x"})
    ]
    async with serve(judge={**two, "allow_inline": inline}) as client:
        document = (await client.get("/openapi.json")).json()

    schema = validator(document, "ScoreRequest")
    assert [True, True, False, inline, False] == [schema.is_valid(body) for body in bodies]


async def test_a_rubric_of_a_request_is_refused_by_default(serve, writes, fakes):
    body = {
        "items": [ITEM],
        "metrics": ["judge"],
        "options": {"judge": {"rubric": tomllib.loads(TWO_CALLS)}},
    }
    async with serve() as client:
        answer = await client.post("/score", json=body)

    [fault] = answer.json()["errors"]
    assert (422, "/options/judge/rubric") == (answer.status_code, fault["pointer"])
    assert "rubrics of a request are off in the settings" in fault["detail"]
    assert [] == written(fakes)


async def test_an_item_may_have_a_rubric_and_data_of_its_own(serve, writes, two):
    """Over those of the request, option by option."""
    other = ITEM | {"options": {"judge": {"data": {"group": "style"}}}}
    body = {"items": [ITEM, other], "metrics": ["judge"], "explain": True}
    body["options"] = {"judge": {"rubric": "two", "data": DATA}}
    async with serve(judge=two) as client:
        results = (await client.post("/score", json=body)).json()["results"]

    texts = [result["details"]["judge"]["calls"][0]["question"] for result in results]
    assert ["(colour)" in texts[0], "(style)" in texts[1]] == [True, True]
