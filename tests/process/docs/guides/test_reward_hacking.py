"""docs/guides/reward-hacking.md: the watch as the page shows it, and the figures that it states."""

import asyncio
import logging
import multiprocessing
import re
from contextlib import closing
from functools import cache
from statistics import median

import numpy as np
import pytest

from loadtest.watch import FRESH, NOISES, SLOPES, delay
from scoregate.trainers import Reward, divergence, verl_omni, watch
from scoregate.trainers.watch import Watch
from tests.support.pages import page
from tests.unit.client.trainers.conftest import settle

PAGE = "reward-hacking.md"
FORK = multiprocessing.get_context("fork")
SEEDS = range(FRESH, FRESH + 40)


@pytest.fixture(autouse=True)
def here(fake_service, monkeypatch):
    """The service, named in the environment; it has no `artifact`."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", fake_service.url)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 255, (20, 16, 16, 3), np.uint8)


def test_the_figures_of_a_watch_are_in_the_log_of_a_step(module, caplog, images):
    """All that the page lists, for the metric that the service has; the lack of the other is one line."""
    watched = module(PAGE, "watched.py")
    with caplog.at_level(logging.INFO):
        for number in range(2):
            for call in range(10):
                watched.reward(images, [f"{number} {call}"] * 20)
            settle(watched.reward)
            watched.end_of_step(number)
    watched.reward.close()

    first = next(message for message in caplog.messages if message.startswith("step 0: "))
    listed = re.findall(r"^\*.*?`(scoregate/watch/[a-z_/]+)`", page(f"guides/{PAGE}"), re.MULTILINE)
    assert 8 <= len(listed)
    for name in listed:
        assert f"{name.replace('artifact', 'clipscore')} " in first
    assert 1 == caplog.text.count("artifact has no score: unknown_metric")


def test_a_forked_process_has_a_watch_of_its_own(images):
    """It has the sample of its seed again, and nothing of its parent's."""
    reward, results = Reward(watch=Watch("clipscore", share=0.5)), FORK.SimpleQueue()

    def watch():
        reward(images, ["a square"] * 20)
        settle(reward)
        results.put(reward.statistics())

    with closing(reward):
        watch()
        child = FORK.Process(target=watch)
        child.start()
        child.join(60)
    mine, its = results.get(), results.get()

    assert 0 == child.exitcode
    name = "scoregate/watch/clipscore/mean"
    assert mine[name] == its[name]


def test_a_worker_of_verl_omni_logs_its_watch(caplog, monkeypatch, images):
    """By the keys of the reward function, with one reward for all calls."""
    made = []

    def make(*given, **settings):
        made.append(Reward(*given, **settings))
        return made[-1]

    async def scored():
        keys = {"ground_truth": "a square", "watch": ["clipscore"], "watch_every": 20}
        calls = [verl_omni.compute_score(image.transpose(2, 0, 1), **keys) for image in images]
        return await asyncio.gather(*calls)

    monkeypatch.setattr(verl_omni, "reward", cache(make))
    with caplog.at_level(logging.INFO, "scoregate.watch"):
        scores = asyncio.run(scored())
        [reward] = made
        settle(reward)
    reward.close()

    assert all({"score", "vqascore"} == each.keys() for each in scores)
    assert "step 0: scoregate/watch/reward " in caplog.text


def test_the_page_states_the_constants():
    """Of the test, the figures and the queue."""
    text = re.sub(r"\s+", " ", page(f"guides/{PAGE}"))

    assert f"the last {divergence.RECENT} steps with {divergence.BEFORE} earlier ones" in text
    assert f"without the {divergence.GAP} between" in text
    assert "blocks of {1} and of {2} steps".format(*divergence.STEP_SCALES) in text
    assert f"mean reward of the last {divergence.RECENT} steps is the highest" in text
    one, two = (Watch(["x", "y"][:count]).tests()["x"].threshold for count in (1, 2))
    assert f"With one metric the threshold is {one} of them, with two {two}" in text
    assert f"at least {divergence.COMMON_VALUES} of the last {divergence.RECENT} must be below" in text
    first, second = (divergence.MIN_VALUES * steps for steps in divergence.STEP_SCALES[1:])
    assert f"The first {divergence.MIN_VALUES} steps have no alarm" in text
    assert f"none before {first} and {second} steps" in text
    assert "from {} to {}".format(*sorted((min(divergence.THRESHOLDS), max(divergence.THRESHOLDS)))) in text
    assert f"At most {100 * Watch('x').alarms:g} % of runs of {divergence.STEPS_OF_A_RUN:,} steps" in text
    assert f"the newest {watch.MAX_CORRELATED_PAIRS} watched pictures" in text
    assert f"within {100 * watch.SATURATED_SHARE:g} % of an end" in text
    assert f"thumbnails of {watch.THUMBNAIL_PIXELS} × {watch.THUMBNAIL_PIXELS} pixels" in text
    assert watch.MAX_DUPLICATE_DIFFERENCE / 255 < 0.01
    assert f"at most {watch.IMAGES_AT_ONCE} pictures at a time" in text
    assert f"At most {watch.MAX_WAITING} pictures and {watch.MAX_WAITING_BYTES >> 20} MiB wait" in text


@pytest.mark.parametrize("noise", NOISES)
def test_the_page_states_the_delays(noise):
    """The medians of a part of those runs are within 3 steps of the table."""
    [cells] = re.findall(
        rf"^\| {re.escape(noise)} \| (\d+) steps \| (\d+) steps \|$", page(f"guides/{PAGE}"), re.M
    )

    for slope, stated in zip(SLOPES, cells, strict=True):
        found = median(delay(seed, slope, NOISES[noise]) for seed in SEEDS)
        assert int(stated) == pytest.approx(found, abs=3)
