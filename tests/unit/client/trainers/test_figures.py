"""scoregate.trainers.figures: what the log of a step says."""

import logging

import httpx2 as httpx
import pytest

from scoregate.errors import BadImageError
from scoregate.trainers.figures import log, statistics
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import answer


def cached(asked, request):
    """A step whose first item came from the cache, and was warned about."""
    content = answer(asked).json() | {"warnings": ["item 0, vqascore: cut"]}
    content["results"][0]["cache"] = {"vqascore": "hit"}
    return httpx.Response(200, json=content)


def test_figures_are_those_of_groups(scripted):
    """The spread within a group counts, and not that between them; a group of one has none."""
    reward, _ = scripted()
    outcomes = reward.outcomes([png()] * 5, ["1", "3", "9", "9", "5"])
    figures = statistics(outcomes, ["a", "a", "b", "b", "c"])

    assert (5.4, 0.5, 0.5) == tuple(figures[f"scoregate/{name}"] for name in ("mean", "spread", "constant"))
    assert 5.4 == figures["scoregate/vqascore/mean"]


@pytest.mark.filterwarnings("ignore::scoregate.ScoregateWarning")
def test_masked_pictures_warnings_and_cache_hits_are_counted(scripted):
    """Since the last time; prompts are the groups."""
    reward, _ = scripted(cached)
    reward.outcomes([png(), png(), b"", b""], ["1", "3", "1", "3"])
    first, second = reward.statistics(), reward.statistics()

    names = ("masked", "warnings", "cached")
    assert (0.5, 1.0, 0.5) == tuple(first[f"scoregate/{name}"] for name in names)
    assert "scoregate/spread" not in first  # no prompt has two scores
    assert {} == second


def test_figures_of_pictures_without_any_score_are_no_numbers_of_scores():
    """No 0, and no NaN."""
    assert {"scoregate/masked": 1.0, "scoregate/warnings": 0.0} == statistics([BadImageError("x")], ["a"])


class Run:
    """W&B's run and Accelerate's accelerator: `log(values, step=step)`."""

    def log(self, values, step=None):
        self.found = {name: (value, step) for name, value in values.items()}


class SummaryWriter:
    """TensorBoard's."""

    def __init__(self):
        self.found = {}

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.found[tag] = (scalar_value, global_step)


@pytest.mark.parametrize("kind", [Run, SummaryWriter])
def test_figures_go_to_the_log_of_a_run(kind):
    """Each with its step."""
    to = kind()
    log({"scoregate/mean": 0.5}, 3, to)

    assert {"scoregate/mean": (0.5, 3)} == to.found


def test_figures_are_one_line_of_a_plain_log(caplog):
    """With few digits."""
    with caplog.at_level(logging.INFO):
        log({"scoregate/mean": 1 / 3, "scoregate/masked": 0.0}, 3, logging.getLogger("x"))

    assert ["step 3: scoregate/mean 0.3333, scoregate/masked 0"] == caplog.messages
