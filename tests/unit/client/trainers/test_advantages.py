"""Advantages as TRL, Flow-Factory and Pref-GRPO compute them from the rewards of groups."""

import numpy as np
import pytest

from scoregate.trainers.groups import advantages

GROUPS = ["a", "b"] * 4
RANDOM = np.random.default_rng(0)
PARTS = {"x": RANDOM.random(8).tolist(), "y": (10 * RANDOM.random(8)).tolist()}
WEIGHTS = {"x": 2.0, "y": 0.5}


def within(values, scale):
    """Normalised within each group."""
    found = np.zeros(8)
    for group in "ab":
        own = np.array(GROUPS) == group
        found[own] = (values[own] - values[own].mean()) / scale(values[own])
    return found


def summed(of):
    return sum(WEIGHTS[name] * np.array(each) for name, each in of.items())


def test_trl_normalises_the_sum_by_the_sample_deviation():
    """`GRPOTrainer` with `scale_rewards="group"`: (r - mean) / (std + 1e-4), of torch's `std`."""
    expected = within(summed(PARTS), lambda own: own.std(ddof=1) + 1e-4)

    assert expected == pytest.approx(advantages(PARTS, GROUPS, "trl", WEIGHTS))


def test_flow_factory_divides_the_sum_by_the_deviation_of_all_pictures():
    """`compute_weighted_sum` with `global_std`, the default: (r - group's mean) / max(std of all, 1e-6)."""
    total = summed(PARTS)
    expected = within(total, lambda own: max(total.std(), 1e-6))

    assert expected == pytest.approx(advantages(PARTS, GROUPS, "flow_factory", WEIGHTS))


def test_flow_factory_without_global_std_divides_by_the_deviation_of_the_group():
    """`global_std: false`: (r - mean) / max(std, 1e-6), of NumPy's `std`."""
    expected = within(summed(PARTS), lambda own: max(own.std(), 1e-6))

    assert expected == pytest.approx(advantages(PARTS, GROUPS, "flow_factory", WEIGHTS, global_std=False))


def test_trl_can_divide_by_the_deviation_of_all_pictures():
    """`scale_rewards="batch"`: (r - group's mean) / (std of all + 1e-4)."""
    total = summed(PARTS)
    expected = within(total, lambda own: total.std(ddof=1) + 1e-4)

    assert expected == pytest.approx(advantages(PARTS, GROUPS, "trl", WEIGHTS, global_std=True))


def test_pref_grpo_normalises_each_reward_before_the_sum():
    """`compute_weighted_advantages` with `use_group`: (r - mean) / (std + 1e-8) of each reward."""
    parts = {name: within(np.array(each), lambda own: own.std(ddof=1) + 1e-8) for name, each in PARTS.items()}

    assert summed(parts) == pytest.approx(advantages(PARTS, GROUPS, "pref_grpo", WEIGHTS))


@pytest.mark.parametrize(
    ("trainer", "scale"),
    [
        ("trl", lambda own: own.std(ddof=1) + 1e-4),
        ("flow_factory", lambda own: max(own.std(), 1e-6)),
        ("pref_grpo", lambda own: own.std(ddof=1) + 1e-8),
    ],
)
def test_gdpo_normalises_each_part_and_then_the_whole(trainer, scale):
    """Within its group, and over all pictures; TRL's `normalize_then_sum`."""
    total = summed({name: within(np.array(each), scale) for name, each in PARTS.items()})
    expected = (total - total.mean()) / scale(total)

    assert expected == pytest.approx(advantages(PARTS, GROUPS, trainer, WEIGHTS, gdpo=True))


def test_gdpo_of_newer_flow_factory_without_global_std_leaves_the_sum():
    """`compute_gdpo` with `global_std: false` returns the weighted sum of the parts' advantages."""
    expected = summed(
        {name: within(np.array(each), lambda own: max(own.std(), 1e-6)) for name, each in PARTS.items()}
    )
    found = advantages(PARTS, GROUPS, "flow_factory", WEIGHTS, gdpo=True, global_std=False)

    assert expected == pytest.approx(found)


def test_a_group_of_equal_rewards_has_no_advantage():
    """And no NaN."""
    for trainer in ("trl", "flow_factory", "pref_grpo"):
        assert [0.0] * 8 == advantages({"x": [0.5] * 8}, GROUPS, trainer)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "0.5"])
@pytest.mark.parametrize("trainer", ["trl", "flow_factory", "pref_grpo"])
def test_a_reward_that_is_no_finite_number_is_refused_by_its_picture_and_part(trainer, value):
    """A ValueError, and no NaN for the pictures of its group."""
    parts = {**PARTS, "y": [*PARTS["y"][:5], value, *PARTS["y"][6:]]}

    with pytest.raises(ValueError, match="picture 5 has no finite number as y"):
        advantages(parts, GROUPS, trainer, WEIGHTS)


def test_rewards_may_be_numbers_of_numpy():
    """As a tensor's `numpy()` has them."""
    parts = {name: np.float32(each) for name, each in PARTS.items()}

    assert advantages(PARTS, GROUPS, "trl", WEIGHTS) == pytest.approx(
        advantages(parts, GROUPS, "trl", WEIGHTS), 1e-5
    )


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"groups": [*GROUPS[:7], "c"]}, "a group of one picture has no advantage: 'c'"),
        ({"parts": {"x": PARTS["x"], "y": [0.5] * 7}}, "y has 7 rewards for 8 pictures"),
        ({"weights": {"x": 1.0}}, "a weight for each of x, y"),
        ({"weights": {"x": 1.0, "y": float("nan")}}, "the weight of y is not finite"),
        (
            {"global_std": True, "gdpo": True},
            "global_std is a setting of flow_factory, and of trl without gdpo",
        ),
        ({"global_std": True, "trainer": "pref_grpo"}, "global_std is a setting of flow_factory"),
    ],
)
def test_what_has_no_advantage_is_refused(given, why):
    """A ValueError that says why."""
    with pytest.raises(ValueError, match=why):
        advantages(**{"parts": PARTS, "groups": GROUPS, "trainer": "trl", **given})
