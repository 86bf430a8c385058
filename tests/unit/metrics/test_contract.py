"""A metric's declaration: what cannot be served is refused when it is declared."""

import pytest

from service.metrics.common.contract import Metric, MetricOptions, Score
from service.metrics.common.registry import own


async def half(item, models, options):
    return Score(0.5, {})


def plain(item, models, options):
    return Score(0.5, {})


class Demanding(MetricOptions):
    """An option without a default."""

    gain: float


class Unrelated:
    """Not options."""


@pytest.mark.parametrize(
    ("declared", "error"),
    [
        (lambda: Metric("Half", half), ValueError),
        (lambda: Metric("half score", half), ValueError),
        (lambda: Metric("half", plain), TypeError),
        (lambda: Metric("half", half, options=Unrelated), TypeError),
        (lambda: Metric("half", half, options=MetricOptions()), TypeError),
        (lambda: Metric("half", half, options=Demanding), ValueError),
        (lambda: Metric("half", half, range=(1, 0)), ValueError),
        (lambda: Metric("half", half, details=Unrelated), TypeError),
    ],
)
def test_a_declaration_that_cannot_be_served_raises(declared, error):
    """A bad name, a plain function, options that are none or lack defaults, an empty range, odd details."""
    with pytest.raises(error):
        declared()


def test_one_metric_is_the_default():
    """And it stands first wherever metrics are listed."""
    metrics = list(own().values())

    assert [True] + [False] * (len(metrics) - 1) == [metric.default for metric in metrics]


def test_every_metric_names_its_paper_and_a_range():
    """What `GET /models` tells about it."""
    for metric in own().values():
        assert metric.paper
        assert metric.range[0] < metric.range[1]
        assert metric.score.__doc__
