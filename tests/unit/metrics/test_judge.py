"""Grades: what a judge is asked and shown, and what its labels' probabilities come to."""

from math import log
from types import SimpleNamespace

import pytest

from models.core.examples import IMAGE, TEXTS
from models.core.outcomes import Choices, Text
from models.families.fake.model import GREY
from service.core.errors import Invalid, Unanswered
from service.metrics.common.contract import Item
from service.metrics.judge import demand_of, error_of_mean, essential, judge, output_metric, spread_of, unsure
from service.metrics.rubrics.grading import MAX_FILLED, filled, mean, texts_of
from service.metrics.rubrics.options import JudgeOptions, options_with
from service.metrics.rubrics.rubric import FRAMES, rubric_of
from service.observability.notes import Code
from service.serving.admission import Demand
from tests.support.rubrics import TWO_CALLS, VALUES, question

DIGITS = VALUES["1-5"]


@pytest.mark.parametrize("value", range(1, 6))
def test_a_sure_grade_is_that_grade(value):
    """However unlikely all labels are, and never outside of 1 to 5."""
    for sure in (0.0, -0.7, -700.0, -740.0):
        log_probs = {label: sure if int(label) == value else sure - 2000 for label in DIGITS}
        assert value == mean(log_probs, DIGITS)


def test_a_mean_of_very_small_probabilities_keeps_its_digits():
    """Their sum alone would have lost them."""
    shares = (0.1, 0.2, 0.3, 0.25, 0.15)
    log_probs = {label: log(p) - 740 for label, p in zip(DIGITS, shares, strict=True)}

    assert sum(n * p for n, p in enumerate(shares, 1)) == pytest.approx(mean(log_probs, DIGITS), rel=1e-12)


def judging(*log_probs):
    """Grade a picture with a model whose labels have these log-probabilities."""

    async def answer(calls):
        return [Choices(tuple((each,) for each in log_probs))]

    return judge(Item(GREY, "a dog"), SimpleNamespace(vqa=SimpleNamespace(answer=answer)), JudgeOptions())


@pytest.mark.anyio
async def test_labels_have_at_most_all_of_the_probability_and_at_least_some():
    """Rounding may give their sum a little more than 1."""
    assert 1.0 == (await judging(*[log(0.2000001)] * 5)).details["outputs"]["grade"]["label_mass"]
    with pytest.raises(Unanswered, match=r"^all labels have the probability 0$"):
        await judging(*[-1e9] * 5)


@pytest.mark.anyio
async def test_labels_with_less_than_half_of_the_probability_are_a_warning():
    """The model would answer something else."""
    [note] = (await judging(*[log(0.49 / 5)] * 5)).warnings

    assert () == (await judging(*[log(0.5000001 / 5)] * 5)).warnings
    assert Code.LOW_LABEL_MASS == note.code
    assert note.text.startswith("the labels 1-5 of grade have 0.49 of")


def test_half_of_the_probability_is_enough_for_labels():
    """Below it there is a warning."""
    labels = {
        mass: SimpleNamespace(labels={"fit": SimpleNamespace(mass=mass, probabilities="12345")})
        for mass in (0.5, 0.499)
    }

    assert [0, 1] == [len(unsure(grades)) for grades in labels.values()]


def test_two_samples_have_a_spread_and_a_mean_with_an_error():
    """One has neither, and no error is known of it."""
    assert (2**0.5, None, None) == (spread_of([1, 3]), spread_of([1]), spread_of([]))
    assert (1.0, 0.0, 0.0) == (
        pytest.approx(error_of_mean(2**0.5, [1, 3])),
        error_of_mean(None, [1]),
        error_of_mean(None, None),
    )


ONE_TOKEN = """
score = "fit"
[[calls]]
instructions = "How well does it show {prompt}?"
answer = "token"
outputs.fit.range = [1, 5]
"""


@pytest.mark.anyio
@pytest.mark.parametrize(("labels", "text"), [("1-5", "4"), ("A-E", "B")])
async def test_a_written_label_is_read_as_it_was_described(labels, text):
    """Of letters A is the best."""

    async def answer(calls):
        return [Text(text)]

    options = options_with({"a": rubric_of("a", ONE_TOKEN)}, False, "a")(labels=labels)
    found = await judge(Item(GREY, "a dog"), SimpleNamespace(vqa=SimpleNamespace(answer=answer)), options)

    assert 4 == found.value


@pytest.mark.anyio
@pytest.mark.parametrize(("texts", "value", "error"), [(("2", "4"), 3, 1.0), (("2",), 2, 0.0)])
async def test_a_mean_of_samples_has_its_standard_error(texts, value, error):
    """By which pairs that differ by less are ties; one sample has none."""

    async def answer(calls):
        return [*map(Text, texts)]

    rubric = rubric_of("a", f"samples = {len(texts)}\n{ONE_TOKEN}")
    options = options_with({"a": rubric}, False, "a")()
    found = await judge(Item(GREY, "a dog"), SimpleNamespace(vqa=SimpleNamespace(answer=answer)), options)

    assert (value, pytest.approx(error)) == (found.value, found.error)


def test_placeholders_have_the_numbers_of_the_images_that_a_call_shows():
    """Those of images that it does not show are empty."""
    rating = options_with({"a": rubric_of("a", ONE_TOKEN)}, False, "a")(data={"style": "ink"}).rating
    shown = {"candidate": "1", "rival": "6", "source": "7"}
    texts = {"prompt": "a dog", **dict.fromkeys((*shown, "frames", "references"), ""), "data.style": "ink"}

    assert texts == texts_of("a dog", rating, {})
    assert texts | shown | {"frames": "2 to 5", "references": "8 to 9"} == texts_of(
        "a dog", rating, {**shown, FRAMES: "2 to 5", "reference*": "8 to 9"}
    )


def test_as_many_characters_as_are_allowed_are_filled_in():
    """One more is an error of the item."""
    [call] = rubric_of("a", ONE_TOKEN).calls
    rating = options_with({"a": rubric_of("a", ONE_TOKEN)}, False, "a")().rating
    most = MAX_FILLED - len("How well does it show ?")

    assert MAX_FILLED == len(filled(call, "x" * most, rating, {}))
    with pytest.raises(Invalid, match=f"have {MAX_FILLED + 1} characters"):
        filled(call, "x" * (most + 1), rating, {})


def test_a_grade_is_one_call_with_the_whole_rubric():
    options = JudgeOptions(rubric="aesthetics", labels="A-E")
    length = len(question("aesthetics", "a dog", "A-E"))

    assert {"vqa": Demand(1, length)} == demand_of("a dog", options)


TEMPLATE = """
score = "fit"
[[calls]]
images = ["source", "candidate"]
instructions = " {data.style} of {prompt} and {prompt}, {source} beside {candidate}: {data.style} "
outputs.fit.range = [1, 5]
"""


@pytest.mark.parametrize("more", ["", 'read = "expected"', 'closing = "Now."'])
def test_a_demand_has_the_length_of_the_texts_that_are_sent(more):
    """Though they are not built: only the numbers of pictures are unknown before these are opened."""
    place = "[[calls]]" if more.startswith("read") else "outputs.fit"
    rubric = rubric_of("template", TEMPLATE.replace(place, f"{more}\n{place}"))
    options = options_with({"template": rubric}, False, "template")(data={"style": "a drawing"})
    [call] = rubric.calls
    text = filled(call, "a dog", options.rating, {})
    sent = call.label_text(text, "fit") if "expected" in more else call.text(text)

    assert {"vqa": Demand(1, len(sent))} == demand_of("a dog", options)


def many_placeholders(count):
    return rubric_of(
        "many", TEMPLATE.replace("{data.style} of", "{prompt}" * count).replace("data.style", "prompt")
    )


@pytest.mark.anyio
async def test_instructions_that_an_item_makes_too_long_are_its_error():
    """A prompt may stand in a thousand placeholders; its length is counted, and the text is not built."""
    rubric, prompt = many_placeholders(1_000), "x" * 4_000
    rating = options_with({"many": rubric}, False, "many")()
    item = Item(GREY, prompt, source=GREY)
    form = len(rubric.calls[0].text("x")) - 1

    assert {"vqa": Demand(1, MAX_FILLED + form)} == demand_of(prompt, rating)
    with pytest.raises(Invalid, match=r"^the instructions of the rubric many have \d{7} characters"):
        await judge(item, SimpleNamespace(vqa=None), rating)


@pytest.mark.parametrize(("read", "calls"), [("written", 6), ("both", 6 + 4), ("expected", 4)])
def test_a_rubric_needs_a_call_for_each_sample_and_each_output(read, calls):
    """Written answers have all outputs of a call; by probabilities each output is a call of its own."""
    text = TWO_CALLS.replace("retries = 1", f'read = "{read}"' + ("\nsamples = 3" * (read != "expected")))
    options = options_with({"two": rubric_of("two", text)}, False, "two")()

    assert calls == demand_of("a dog", options)["vqa"].calls


def test_the_metric_of_an_output_is_declared_by_its_rubric():
    """Its range is that of the output, and its demand that of all calls of the rubric."""
    rubrics = {
        "two": rubric_of("two", 'paper = "A 2024"\n' + TWO_CALLS),
        "one": rubric_of("one", ONE_TOKEN),
    }
    options = options_with(rubrics, False, "two")
    metric = output_metric("sc1", options)

    assert ("judge.sc1", "sc1", "A 2024") == (metric.name, metric.formula, metric.paper)
    assert (0, 10) == metric.range_of()
    assert (0, 1) == metric.range_of(options(rubric="one"))  # which has no such output
    assert demand_of("a dog", options()) == metric.demand("a dog", options())


def test_a_model_is_tried_with_each_kind_of_labels():
    """In a whole question about a known picture."""
    [(role, calls)] = essential().items()

    assert ("vqa", [tuple(labels) for labels in VALUES.values()]) == (role, [call.labels for call in calls])
    expected = [question("semantic_consistency", TEXTS[0], labels) for labels in VALUES]
    assert expected == [call.question for call in calls]
    assert {IMAGE} == {call.image for call in calls}
