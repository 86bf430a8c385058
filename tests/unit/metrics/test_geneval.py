"""GenEval as a metric: which objects are looked for, in which colour and place."""

from service.metrics.geneval import metric
from service.serving.demand import Demand


def test_it_asks_the_detector_once_and_clip_for_each_object_whose_colour_matters():
    """A prompt that will be an error asks nothing."""
    options = metric.options()

    assert {"detector": Demand(1), "clip": Demand(0)} == metric.demand("a photo of two dogs", options)
    both = metric.demand("a photo of a red dog and a blue cat", options)
    assert {"detector": Demand(1), "clip": Demand(2)} == both
    assert {} == metric.demand("a red dog", options)
