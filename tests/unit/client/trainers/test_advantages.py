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


def test_flow_factory_normalises_the_sum_by_the_population_deviation():
    """`compute_weighted_sum` without `global_std`: (r - mean) / max(std, 1e-6), of NumPy's `std`."""
    expected = within(summed(PARTS), lambda own: max(own.std(), 1e-6))

    assert expected == pytest.approx(advantages(PARTS, GROUPS, "flow_factory", WEIGHTS))


def test_pref_grpo_normalises_each_reward_before_the_sum():
    """`compute_weighted_advantages` with `use_group`: (r - mean) / (std + 1e-8) of each reward."""
    parts = {name: within(np.array(each), lambda own: own.std(ddof=1) + 1e-8) for name, each in PARTS.items()}

    assert summed(parts) == pytest.approx(advantages(PARTS, GROUPS, "pref_grpo", WEIGHTS))


@pytest.mark.parametrize(
    ("trainer", "scale"),
    [
        ("flow_factory", lambda own: max(own.std(), 1e-6)),
        ("pref_grpo", lambda own: own.std(ddof=1) + 1e-8),
    ],
)
def test_gdpo_normalises_each_part_and_then_the_whole(trainer, scale):
    """Within its group, and over all pictures."""
    total = summed({name: within(np.array(each), scale) for name, each in PARTS.items()})
    expected = (total - total.mean()) / scale(total)

    assert expected == pytest.approx(advantages(PARTS, GROUPS, trainer, WEIGHTS, gdpo=True))


def test_a_group_of_equal_rewards_has_no_advantage():
    """And no NaN."""
    for trainer in ("trl", "flow_factory", "pref_grpo"):
        assert [0.0] * 8 == advantages({"x": [0.5] * 8}, GROUPS, trainer)


@pytest.mark.parametrize(
    ("parts", "groups", "gdpo"),
    [
        (PARTS, [*GROUPS[:7], "c"], False),
        ({"x": [None, *PARTS["x"][1:]]}, GROUPS, False),
        (PARTS, GROUPS, True),
    ],
    ids=["a group of one", "a picture without a score", "GDPO of TRL"],
)
def test_what_has_no_advantage_is_refused(parts, groups, gdpo):
    """A ValueError that says why."""
    with pytest.raises(ValueError, match=r"picture|gdpo"):
        advantages(parts, groups, "trl", gdpo=gdpo)
