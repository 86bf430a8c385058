"""`Reward(group_by="prompt")`: win rates within the group of a prompt, also of several ranks."""

import threading
from statistics import fmean

import pytest

import scoregate
from scoregate.errors import NoScoreError
from scoregate.results import ScoregateWarning
from scoregate.trainers import Reward, trl
from tests.support.paths import ROOT
from tests.support.pictures import png, see_through

PROFILE = str(ROOT / "loadtest" / "fake.toml")
COLOURS = ("red", "lime", "blue", "white")
PICTURES = [png(colour) for colour in COLOURS]
PROMPTS = ["a red square", "a green square"]
JUDGE = {"options": {"rubric": "preference"}, "group_by": "prompt"}


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A gate around fake models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path_factory.mktemp('q')}/q.sqlite3")
        with scoregate.load(PROFILE) as gate:
            yield gate


def mixed():
    """Two groups of four, one picture of each in turn."""
    return [each for picture in PICTURES for each in (picture, picture)], PROMPTS * 4


def test_rewards_are_win_rates_within_the_prompt(gate):
    """In the order of the call; those of a group sum to half its pictures."""
    images, prompts = mixed()
    rewards = Reward("vqascore", group_by="prompt", client=gate)(images, prompts)

    for place, prompt in enumerate(PROMPTS):
        own = gate.compare(prompt, PICTURES, options={"vqascore": {"output": "logit"}})
        assert own.win_rates == rewards[place::2]
        assert 2 == pytest.approx(sum(rewards[place::2]))
    assert {"vqascore": list(rewards)} == rewards.parts


def test_a_judge_of_pairs_is_a_metric_with_its_rubric(gate):
    """Its options name it."""
    rewards = Reward("judge", client=gate, **JUDGE)(PICTURES, PROMPTS[:1] * 4)

    assert gate.compare(PROMPTS[0], PICTURES, rubric="preference").win_rates == rewards


def test_parts_stay_apart(gate):
    """The win rates by each metric, without weights; the reward is their weighted sum."""
    images, prompts = mixed()
    reward = Reward(
        metrics=["vqascore", "judge"],
        weights=[1.0, 3.0],
        options={"judge": {"rubric": "preference"}},
        group_by="prompt",
        comparison={"schedule": {"kind": "swiss", "pairs_per_image": 1}},
        client=gate,
    )
    rewards = reward(images, prompts)

    pairs = zip(rewards.parts["vqascore"], rewards.parts["judge"], strict=True)
    assert [vqa + 3 * judged for vqa, judged in pairs] == pytest.approx(rewards)
    assert 0.5 == pytest.approx(fmean(rewards.parts["judge"]))


def test_a_picture_that_fails_has_no_reward_and_harms_no_other(gate):
    """Nor has one that is alone in its group; `fill` replaces both."""
    images, prompts = [PICTURES[0], png()[:40], PICTURES[1], PICTURES[2]], [PROMPTS[0]] * 3 + [PROMPTS[1]]
    reward = Reward("vqascore", group_by="prompt", client=gate)
    first, broken, second, alone = reward.outcomes(images, prompts)

    assert 1 == first + second
    assert "image_undecodable" == broken.code
    assert "alone in its group" in alone.detail
    with pytest.raises(NoScoreError):
        reward(images, prompts)
    assert [first, -1, second, -1] == reward(images, prompts, fill=-1)


def test_a_prompt_that_is_refused_is_filled_as_its_pictures(gate):
    """It ends no run; nor does it with a mask."""
    images, prompts = PICTURES, [PROMPTS[0]] * 2 + ["dog " * 2000] * 2
    reward = Reward("vqascore", group_by="prompt", client=gate)
    first, second, *refused = reward.outcomes(images, prompts)

    assert [first, second, 0.0, 0.0] == reward(images, prompts, fill=0.0)
    assert {"invalid"} == {each.code for each in refused}
    with pytest.raises(NoScoreError, match="2 of 4"):
        reward(images, prompts)


def test_figures_of_groups_are_those_of_win_rates(gate):
    """Warnings are counted, and nothing is said about a cache of theirs."""
    reward = Reward("vqascore", group_by="prompt", client=gate)
    with pytest.warns(ScoregateWarning, match="transparency"):
        reward([*PICTURES[:3], see_through()], [PROMPTS[0]] * 4)
    figures = reward.statistics()

    assert 4 + 1 == figures["scoregate/warnings"]  # that the model is a demo is about each picture
    assert "scoregate/cached" not in figures


def test_a_group_of_several_ranks_is_compared_as_one(gate):
    """Each rank gets the rewards of its own pictures, as from one call with all."""
    images, prompts = mixed()
    entries, barrier = {}, threading.Barrier(2)
    whole = Reward("vqascore", group_by="prompt", client=gate)(images, prompts)
    found = {}

    def rank(number):
        def gather(own):
            entries[number] = own
            barrier.wait(60)
            return [*entries[0], *entries[1]]

        own = slice(4 * number, 4 * number + 4)
        reward = Reward("vqascore", group_by="prompt", gather=gather, client=gate)
        found[number] = reward(images[own], prompts[own])

    ranks = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()

    assert whole == [*found[0], *found[1]]


def test_trls_reward_function_has_groups(gate):
    """Its columns are as ever, and so is its name."""
    images, prompts = mixed()
    function = trl.reward_function("vqascore", group_by="prompt", client=gate)

    assert Reward("vqascore", group_by="prompt", client=gate)(images, prompts) == function(
        prompts=prompts, completions=prompts, pictures=images
    )
    assert "vqascore" == function.__name__


@pytest.mark.parametrize("wrong", [{"group_by": "id"}, {"comparison": {"noise": 1}}, {"gather": list}])
def test_a_setting_of_groups_without_a_group_is_refused(wrong):
    """When the reward is made."""
    with pytest.raises(ValueError, match="group_by"):
        Reward(**wrong)


def test_pictures_that_are_compared_have_no_references(gate):
    """A group has none."""
    with pytest.raises(ValueError, match="references"):
        Reward("vqascore", group_by="prompt", client=gate)(
            PICTURES[:2], PROMPTS[:1] * 2, references=[[PICTURES[0]]] * 2
        )
