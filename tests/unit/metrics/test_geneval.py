"""GenEval as a metric: which objects are looked for, in which colour and place."""

import pytest

from service.core.errors import NoTask
from service.metrics.geneval import GenEvalOptions, details, metric, task_for
from service.metrics.objects.checks import ObjectReward, TaskCheck
from service.serving.admission import Demand


def test_it_asks_the_detector_once_and_clip_for_each_object_whose_colour_matters():
    """A prompt that will be an error asks nothing."""
    options = metric.options()

    assert {"detector": Demand(1), "clip": Demand(0)} == metric.demand("a photo of two dogs", options)
    both = metric.demand("a photo of a red dog and a blue cat", options)
    assert {"detector": Demand(1), "clip": Demand(2)} == both
    assert {} == metric.demand("a red dog", options)


DOG = {"class": "dog", "count": 1}


def test_details_hold_the_rule_the_size_and_both_verdicts():
    """Width before height; the reward is not the score."""
    task = task_for("a photo of a dog", metric.options())
    shown = details(task, [], "paper", TaskCheck(True, ""), ObjectReward(False, 0.25), (8, 4))

    assert {"correct": True, "strict": False, "reward": 0.25}.items() <= shown.items()
    assert {"position_rule": "paper", "width": 8, "height": 4}.items() <= shown.items()


def test_metadata_need_a_tag_and_what_to_include():
    """What to exclude is taken over."""
    with pytest.raises(NoTask, match=r"^options\.geneval has a tag or an exclude, and no include$"):
        task_for("a dog", GenEvalOptions(tag="counting"))
    with pytest.raises(NoTask, match=r"^options\.geneval has an include, and no tag$"):
        task_for("a dog", GenEvalOptions(include=[DOG]))
    task = task_for("a dog", GenEvalOptions(tag="counting", include=[DOG], exclude=[{**DOG, "count": 2}]))
    assert [("dog", 2)] == [(clause.name, clause.count) for clause in task.exclude]
