"""docs/guides/reward-hacking.md: rewards and their watch as the page shows them, and its figures."""

import asyncio
import logging
import multiprocessing
import re
from contextlib import closing
from statistics import median

import numpy as np
import PIL.Image
import pytest

from demo.samples import FOLDER
from loadtest.watch import FRESH, NOISES, SLOPES, delay
from scoregate.trainers import Reward, divergence, verl_omni, watch
from scoregate.trainers.figures import log
from scoregate.trainers.watch import Watch
from service.metrics.common.registry import metrics
from service.wiring.load import DEMO_PROFILE, load_settings
from tests.support.pages import fences, page
from tests.support.service import until
from tests.unit.client.trainers.conftest import settle

PAGE = "reward-hacking.md"
PICTURES = [PIL.Image.new("RGB", (16, 16), colour) for colour in ("red", "blue")]
FORK = multiprocessing.get_context("fork")
SEEDS = range(FRESH, FRESH + 40)


@pytest.fixture(autouse=True)
def here(fake_service, monkeypatch):
    """The service, named in the environment; it has no `artifact`."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", fake_service.url)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 255, (20, 16, 16, 3), np.uint8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::scoregate.ScoregateWarning")  # they are demo models
def test_the_program_of_the_page_has_an_alarm(module, monkeypatch, tmp_path, capsys):
    """About when the page says so, or later where the machine is busy and the watch is behind."""
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "samples").symlink_to(FOLDER)
    monkeypatch.chdir(tmp_path)
    module(PAGE, "hacked.py")
    stated, found = (
        int(re.search(r"the alarm came in step (\d+)", text)[1])
        for text in (page(f"guides/{PAGE}"), capsys.readouterr().out)
    )

    assert 90 < stated - 10 <= found


def test_the_figures_of_a_watch_are_in_the_log_of_a_step(caplog, images):
    """All that are listed, for the metric that the service has; the lack of the other is one line."""
    reward = Reward("vqascore", watch=Watch(["artifact", "clipscore"]))
    with caplog.at_level(logging.INFO):
        for number in range(2):
            for call in range(10):
                reward(images, [f"{number} {call}"] * 20)
            settle(reward)
            log(reward.statistics(), number, logging.getLogger("rewards"))
    reward.close()

    first = next(message for message in caplog.messages if message.startswith("step 0: "))
    listed = re.findall(r"`(scoregate/[a-zA-Z_/]+)`", page("reference/client.md"))
    assert 18 == len(listed)
    for name in listed:
        metric = "clipscore" if "watch" in name else "vqascore"
        assert f"{name.replace('METRIC', metric)} " in first
    assert 1 == caplog.text.count("artifact has no score: unknown_metric")


def test_a_formula_of_ones_own_is_over_the_parts_of_a_reward(module):
    """The sum by the weights of the page, and the product."""
    several = module(PAGE, "several.py")
    rewards = several.reward(PICTURES, ["red"] * 2)
    parts = list(zip(*rewards.parts.values(), strict=True))

    assert [0.1 * a + 2.0 * b for a, b in parts] == pytest.approx(list(rewards))
    assert [a * b for a, b in parts] == several.product(PICTURES, ["red"] * 2)


def test_each_picture_is_scored_by_the_metrics_of_its_domain(module):
    """By the weights of the page; its other domains have metrics that there are, too."""
    domains = module(PAGE, "domains.py")
    expected = [0.1 * one for one in Reward("vqascore")(PICTURES, ["red"] * 2)]

    assert expected == pytest.approx(domains.scored(PICTURES, ["red"] * 2, ["other"] * 2))
    assert {*domains.reward.names} <= metrics().keys()


def test_the_composite_shown_is_one_that_a_profile_can_define(tmp_path):
    """With the demo models."""
    [(_, table)] = fences(f"guides/{PAGE}", "toml")
    profile = tmp_path / "profile.toml"
    profile.write_text(DEMO_PROFILE.read_text("utf-8") + table, "utf-8")

    assert {"reward"} == load_settings(profile, {}).composites.keys()


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


def test_a_worker_of_verl_omni_logs_its_watch(caplog, images):
    """By the keys of the reward function, with one reward for all calls."""

    async def scored():
        keys = {"ground_truth": "a square", "watch": ["clipscore"], "watch_every": 20}
        calls = [verl_omni.compute_score(image.transpose(2, 0, 1), **keys) for image in images]
        return await asyncio.gather(*calls)

    verl_omni.reward.cache_clear()
    with caplog.at_level(logging.INFO, "scoregate.watch"):
        scores = asyncio.run(scored())
        until(lambda: "step 0: scoregate/watch/reward " in caplog.text)

    assert 1 == verl_omni.reward.cache_info().misses
    assert all({"score", "vqascore"} == each.keys() for each in scores)


def test_the_pages_state_the_constants():
    """Of the test, the figures and the queue."""
    text = re.sub(r"\s+", " ", page(f"guides/{PAGE}") + page("reference/client.md"))

    assert f"the last {divergence.RECENT} steps with {divergence.RECENT} earlier ones" in text
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
    assert f"thumbnails of {watch.THUMBNAIL_PIXELS} x {watch.THUMBNAIL_PIXELS} pixels" in text
    assert watch.MAX_DUPLICATE_DIFFERENCE / 255 < 0.01
    assert f"at most {watch.IMAGES_AT_ONCE} pictures at a time" in text
    assert f"At most {watch.MAX_WAITING} pictures and {watch.MAX_WAITING_BYTES >> 20} MiB wait" in text


@pytest.mark.parametrize("noise", NOISES)
def test_the_reference_states_the_delays(noise):
    """The medians of a part of those runs are within 3 steps of it."""
    [cells] = re.findall(rf"^\* {re.escape(noise)}: (\d+), or (\d+)$", page("reference/client.md"), re.M)

    for slope, stated in zip(SLOPES, cells, strict=True):
        found = median(delay(seed, slope, NOISES[noise]) for seed in SEEDS)
        assert int(stated) == pytest.approx(found, abs=3)
