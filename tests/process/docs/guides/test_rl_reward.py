"""docs/guides/rl-reward.md: a failure never becomes a reward."""

import logging
import re

import numpy as np
import PIL.Image
import pytest

import scoregate
from service.metrics.common.registry import metrics
from service.wiring.load import DEMO_PROFILE, load_settings
from tests.support.pages import fences, page

PAGE = "rl-reward.md"
RED, BLUE = (PIL.Image.new("RGB", (16, 16), colour) for colour in ("red", "blue"))


@pytest.fixture(autouse=True)
def here(fake_service, monkeypatch):
    """The service, named in the environment as the page does."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", fake_service.url)


def test_each_picture_gets_the_log_odds_of_its_own_prompt(module):
    """In order, the same for the same pair, and not a probability."""
    first, second, again = module(PAGE, "reward.py").rewards([RED, BLUE, RED], ["red"] * 3)
    with scoregate.Client() as client:
        [result] = client.score_items([(RED, "red")], explain=True)

    assert first == again != second
    assert first == pytest.approx(result.details["vqascore"]["logit"])


def test_a_picture_without_a_score_is_not_a_number_and_leaves_its_group(module):
    """Its advantage is masked, and the others are normalised without it."""
    reward = module(PAGE, "reward.py")
    rewards = reward.rewards([RED, b"no picture", BLUE], ["red"] * 3)
    values, mask = reward.advantages(np.append(rewards, 5.0), np.array([0, 0, 0, 1]))

    assert [False, True, False] == np.isnan(rewards).tolist()
    assert [True, False, True, False] == mask.tolist()  # the last is alone in its group
    assert {-1, 0, 1} == set(values.round(4).tolist())


def test_a_sum_has_its_parts(module):
    """By the weights of the page."""
    rewards, parts = module(PAGE, "several.py").scored([RED, BLUE], ["red"] * 2)

    sums = [0.1 * a + 2.0 * b for a, b in zip(parts["vqascore"], parts["clipscore"], strict=True)]
    assert sums == pytest.approx(rewards)


def test_each_picture_is_scored_by_the_metrics_of_its_domain(module):
    """By the weights of the page; its other domains have metrics that there are, too."""
    domains, several = module(PAGE, "domains.py"), module(PAGE, "several.py")
    _, parts = several.scored([RED, BLUE], ["red"] * 2)

    expected = [0.1 * one for one in parts["vqascore"]]
    assert expected == pytest.approx(domains.scored([RED, BLUE], ["red"] * 2, ["other"] * 2))
    assert {*domains.reward.names} <= metrics().keys()


def test_a_group_has_win_rates_and_advantages(module):
    """Each part apart; the advantages of all pictures have the mean 0 and the deviation 1."""
    groups = module(PAGE, "groups.py")
    reward = groups.reward_of_groups()
    pictures, prompts = [RED, BLUE] * 2, ["red", "red", "blue", "blue"]
    parts = reward(pictures, prompts).parts
    values = groups.advantages_of(reward, pictures, prompts)
    reward.close()

    assert {"judge", "clipscore"} == parts.keys()
    assert all(1 == each[0] + each[1] == each[2] + each[3] for each in parts.values())
    assert (0, 1) == pytest.approx((np.mean(values), np.std(values, ddof=1)), abs=1e-6)


def test_a_step_is_a_line_in_the_log(module, caplog):
    """With the figures that the page lists."""
    logged = module(PAGE, "logged.py")
    logged.reward.outcomes([RED, BLUE], ["red"] * 2)
    with caplog.at_level(logging.INFO, "rewards"):
        logged.end_of_step(7)

    assert "step 7: " in caplog.text
    listed = re.findall(r"`(scoregate/[a-z_/]+)`", page(f"guides/{PAGE}"))
    assert all(f"{name} " in caplog.text for name in listed)


def test_questions_are_written_before_training(module):
    """Each prompt's id; one without anything to ask about is missing, and the sets are stored."""
    prompts = ["a red square", "a green circle and a blue star", "hello"]
    with scoregate.Client() as client:
        ids = module(PAGE, "warm.py").warm(client, prompts)
        stored = client.question_set(ids[prompts[0]])

    assert set(prompts[:2]) == ids.keys()
    assert prompts[0] == stored.prompt


def test_each_item_is_asked_the_questions_of_its_own_prompt(module):
    """The ids go back in the items' options, as the page shows."""
    prompts = ["a red square", "a green circle"]
    [shown] = re.findall(r"^Item\(.*question_set.*\)$", page(f"guides/{PAGE}"), re.MULTILINE)
    with scoregate.Client() as client:
        ids = module(PAGE, "warm.py").warm(client, prompts)
        names = {"Item": scoregate.Item, "image": RED, "ids": ids}
        items = [eval(shown, {**names, "prompt": prompt}) for prompt in prompts]
        report = client.score_items(items, "dsg", explain=True)

    assert list(ids.values()) == [result.details["dsg"]["question_set"] for result in report]


def test_the_composite_shown_is_one_that_a_profile_can_define(tmp_path):
    """Beside the demo models, with the dialect that is shown."""
    tables = [table for _, table in fences(f"guides/{PAGE}", "toml")]
    profile = tmp_path / "profile.toml"
    profile.write_text("\n".join([DEMO_PROFILE.read_text("utf-8"), *tables]), "utf-8")
    settings = load_settings(profile, {})

    assert {"reward"} == settings.composites.keys()
    assert ("10.0.0.5", 8001, ["unirl"]) == (
        settings.dialects.host,
        settings.dialects.port,
        [*settings.dialects.enabled],
    )


def test_the_drift_of_an_encoding_can_be_measured(module):
    """Of noise, which JPEG changes."""
    noise = np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)

    assert module(PAGE, "quality.py").drift([noise], ["noise"]) > 0


def test_the_sizes_of_a_step_follow_from_the_pictures(module):
    """The rows of the table: bytes, and seconds on both networks; a raw picture is the client's own."""
    lines = [
        line.split("|")
        for line in page(f"guides/{PAGE}").splitlines()
        if re.match(r"\| `\w+` \| \d+ kB", line)
    ]
    sizes = {each[1].strip(" `"): [float(cell.split()[0]) for cell in each[2:6]] for each in lines}
    raw = scoregate.images.encoded(np.zeros((512, 512, 3), np.uint8))

    assert ["raw", "png", "jpeg"] == list(sizes)
    assert len(raw) == pytest.approx(sizes["raw"][0] * 1000, rel=0.001)
    for picture, step, slow, fast in sizes.values():
        assert picture * 1.152 == pytest.approx(step, abs=1)
        assert step / 118 == pytest.approx(slow, abs=0.05)
        assert step / 1180 == pytest.approx(fast, abs=0.05)
