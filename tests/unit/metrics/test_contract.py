"""A metric's declaration: what cannot be served is refused when it is declared."""

from dataclasses import fields, is_dataclass

import pytest

from service.metrics.common.contract import Metric, MetricOptions, Score, TogetherOptions
from service.metrics.common.registry import own
from service.serving.context import Context


async def half(item, models, options):
    return Score(0.5, {})


def plain(item, models, options):
    return Score(0.5, {})


class Demanding(MetricOptions):
    """An option without a default."""

    gain: float


class Unrelated:
    """Not options."""


def declared(name="half", score=half, **more):
    """Return the declaration of a metric, as it is made when its module is imported."""
    return lambda: Metric(name, score, **more)


@pytest.mark.parametrize(
    ("declare", "kind", "error"),
    [
        (declared("Half"), ValueError, r"^the name of a metric must match \S+$"),
        (declared("half score"), ValueError, r"^the name of a metric must match \S+$"),
        (declared(score=plain), TypeError, "^the score of half must be an `async def`$"),
        (
            declared(options=Unrelated),
            TypeError,
            r"^the options of half must be a subclass of MetricOptions$",
        ),
        (
            declared(options=MetricOptions()),
            TypeError,
            r"^the options of half must be a subclass of MetricOptions$",
        ),
        (declared(options=Demanding), ValueError, "gain"),
        (declared(range=(1, 0)), ValueError, r"^the range of half must be \(least, largest\)$"),
        (declared(range=(1, 1)), ValueError, r"^the range of half must be \(least, largest\)$"),
        (declared(details=Unrelated), TypeError, r"^the details of half cannot be described: \w"),
        (
            declared(uses=("source", "sketch", "mask")),
            ValueError,
            r"^half uses mask, sketch; an item has no such pictures$",
        ),
        (
            declared(direction="nearer is better"),
            ValueError,
            r'^the direction of half must be "higher is better" or "lower is better"$',
        ),
    ],
)
def test_a_declaration_that_cannot_be_served_raises(declare, kind, error):
    """A bad name, a plain function, options that are none or lack defaults, an empty range, odd details."""
    with pytest.raises(kind, match=error):
        declare()


def test_a_metric_without_question_sets_has_no_style():
    with pytest.raises(TypeError, match=r"^half uses no question sets$"):
        Metric("half", half).style_of()


def test_one_metric_is_the_default():
    """And it stands first wherever metrics are listed."""
    metrics = list(own().values())

    assert [True] + [False] * (len(metrics) - 1) == [metric.default for metric in metrics]


def test_every_metric_names_its_paper_and_a_range():
    """What `GET /models` tells about it."""
    for metric in own().values():
        assert metric.paper
        least, largest = metric.range_of()
        assert least < largest
        assert metric.score.__doc__


QUESTIONS = [{"id": 1, "text": "Is there a circle?", "expected": "yes"}]
CHOICES = [{**QUESTIONS[0], "choices": ["yes", "no"]}]
ID = f"sha256:{64 * '0'}"
OVERRULED = [
    *[
        ("vqascore", {"output": output, "normalization": "product"}, "normalization", "output")
        for output in ("logit", "negative_no")
    ],
    ("vqascore", {"output": "logit", "answer": "No"}, "answer", "output"),
    *[
        ("dsg", {"question_set": given, "generation": "three_calls"}, "generation", "question_set")
        for given in (ID, QUESTIONS)
    ],
    *[("tifa", {"question_set": given, "verify": True}, "verify", "question_set") for given in (ID, CHOICES)],
    *[
        ("skills", {"question_set": given, "singular": "one_question"}, "singular", "question_set")
        for given in (ID, QUESTIONS)
    ],
    ("vq2", {"answers": "generated", "normalization": "yes_no"}, "normalization", "answers"),
    *[
        (name, {"frames": "grid", "samples": 1}, "frames", "samples")
        for name, metric in own().items()
        if not metric.options.together
    ],
]


def test_a_metric_that_scores_frames_together_makes_no_grid():
    """Whatever else is set; its default value is no warning."""
    [note] = TogetherOptions(frames="grid").unused()

    assert "the option frames has no effect with this metric" == note.text
    [_, note] = TogetherOptions(frames="top", share=0.25).unused()
    assert "the option share has no effect with this metric" == note.text
    assert () == TogetherOptions(frames="mean", samples=3).unused()


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ({"share": 0.25}, ["share: frames"]),
        ({"share": 0.25, "frames": "min"}, ["share: frames"]),
        ({"share": 0.25, "frames": "top"}, []),
        ({"share": 0.25, "frames": "quantile"}, []),
        ({"share": 0.25, "frames": "top", "samples": 1}, ["frames: samples", "share: samples"]),
    ],
)
def test_a_share_is_of_the_best_frames_or_a_quantile(given, reasons):
    """Without effect for another fold, and of one frame."""
    told = [note.text for note in MetricOptions(**given).unused()]

    assert [f"the option {' has no effect with this '.join(each.split(': '))}" for each in reasons] == told


@pytest.mark.parametrize(("metric", "given", "name", "reason"), OVERRULED)
def test_an_option_without_effect_because_of_another_one_is_a_warning(metric, given, name, reason):
    """It has no warning alone, nor with its default value, as in the provenance of a response."""
    options = own()[metric].options
    [note] = options.model_validate(given).unused()
    alone = options.model_validate({name: given[name]})
    with_default = options.model_validate({**given, name: options.model_fields[name].default})

    assert "option_unused" == note.code
    assert f"the option {name} has no effect with this {reason}" == note.text
    assert () == alone.unused() == with_default.unused()


def test_a_metric_and_its_groups_have_at_most_eight_fields_each():
    """A reader finds a field by its topic; a declaration names it without the group."""
    groups = [kind for kind in Metric.__mro__ if is_dataclass(kind)]
    own = {kind.__name__: set(kind.__annotations__) - {"_"} for kind in groups}

    assert {field.name for field in fields(Metric)} == set().union(*own.values())
    assert [] == [name for name, of_kind in own.items() if len(of_kind) > 8]


def test_a_context_has_at_most_twelve_fields():
    """What belongs to one metric, to all copies or to the payer is a record of its own."""
    assert len(fields(Context)) <= 12
