"""Metrics whose lower scores are the better ones: plug-ins may declare such."""

import pytest

from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls


async def level(item: Item, models: ModelCalls, options: MetricOptions) -> Score:
    """How bright the picture is."""
    return Score(item.image.rgb.getpixel((0, 0))[0] / 256, {})


def test_a_direction_says_which_scores_are_better():
    """Else no ranking by it would mean anything."""
    with pytest.raises(ValueError, match="lower is better"):
        Metric("odd", level, direction="nearer to 1")
