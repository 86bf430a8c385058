"""scoregate.trainers.divergence: the test for hacking, on simulated runs of `loadtest.watch`."""

import math
import random
from itertools import pairwise
from statistics import median, pvariance

import pytest

from loadtest.watch import (
    FRESH,
    HELD,
    NOISES,
    SLOPES,
    USUAL,
    alarm,
    deepest,
    delay,
    flat,
    hacked,
    learned,
    run,
)
from scoregate.trainers.divergence import MIN_VALUES, THRESHOLDS, Change, Divergence

RUNS = 200
ALARMS = 0.05
MOST = 21  # of 200 runs: at a rate of 5 % there are more in fewer than 1 of 1,000 such tests
CLEAN = [(learned, learned), (learned, flat), (flat, flat)]  # the trends of the reward and of the metric


def falling(curve, start, slope=1.0):
    """The curve with a fall from a step on."""
    return [value - slope * max(0, step - start) for step, value in enumerate(curve)]


def noise(seed=0, steps=300):
    dice = random.Random(seed)
    return [dice.gauss(0, 1) for _ in range(steps)]


def sizes_of(values, change=None):
    """The size of the change after each of the values."""
    change = change or Change()
    sizes = []
    for value in values:
        change.add(value)
        sizes.append(change.size)
    return sizes


def test_the_bound_is_that_of_the_binomial_distribution():
    """Of 200 runs with the stated rate, more alarms than the bound have a probability below 0.1 %."""
    at_most = sum(math.comb(RUNS, n) * ALARMS**n * (1 - ALARMS) ** (RUNS - n) for n in range(MOST + 1))

    assert 0.999 < at_most < 0.9996


@pytest.mark.slow
def test_clean_runs_have_no_more_alarms_than_stated():
    """Of 1,000 steps, whose seeds are none of the calibration's, of all noises and trends in turn."""
    kinds = [(noise, *trends) for noise in NOISES.values() for trends in CLEAN]
    found = [alarm(run(FRESH + number, *kinds[number % len(kinds)]), ALARMS) for number in range(RUNS)]

    assert sum(step is not None for step in found) <= MOST


@pytest.mark.slow
def test_the_rate_holds_for_a_reward_that_always_rises():
    """The worst case: only the metric, which stays as it is, prevents the alarm."""
    noises = list(NOISES.values())

    def rising(step):
        return 2.0 * step

    found = [
        alarm(run(FRESH + RUNS + number, noises[number % len(noises)], rising, flat), ALARMS)
        for number in range(RUNS)
    ]

    assert sum(step is not None for step in found) <= MOST


@pytest.mark.slow
def test_the_rate_holds_without_autocorrelation_whatever_the_spread_and_the_outliers():
    """A spread that doubles at once, and Student's t with 3 and 2 degrees of freedom; the reward rises."""
    noises = list(HELD.values())
    found = [deepest(noises[number % len(noises)], FRESH + number) for number in range(RUNS)]

    assert sum(fall >= THRESHOLDS[ALARMS] for fall in found) <= MOST


def test_hacked_runs_have_an_alarm_within_twenty_steps():
    """In the median of all kinds of noise and slopes, and of the usual noise for each slope."""
    delays = [
        delay(FRESH + number, slope, noise)
        for slope in SLOPES
        for noise in NOISES.values()
        for number in range(15)
    ]

    assert median(delays) <= 20
    for slope in SLOPES:
        assert median(delay(FRESH + number, slope, USUAL) for number in range(50)) <= 20


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_scale_of_a_score_does_not_matter(factor):
    """Its own noise is the unit."""
    rewards, watched = hacked(FRESH, 0.5, USUAL, 150, 200)
    scaled = [factor * value for value in rewards], [factor * value + 3 for value in watched]

    assert None is not alarm((rewards, watched)) == alarm(scaled)


def test_a_metric_that_falls_alone_is_no_alarm():
    """The reward must rise; nor is a rising one an alarm if the metric rises too."""
    down, up = falling(noise(1), 150), falling(noise(2), 150, -1.0)

    assert alarm((noise(3), down)) is None
    assert alarm((down, down)) is None
    assert alarm((up, up)) is None
    assert alarm((up, down)) is not None


def test_a_slow_change_is_found_in_means_over_steps():
    """A fall that no 25 steps show."""
    steps = 2000
    up, down = falling(noise(4, steps), 900, -0.05), falling(noise(5, steps), 900, 0.05)

    assert 900 < alarm((up, down)) < 1100


def test_a_change_is_measured_by_the_earlier_ones():
    """The mean of 10 values minus that of 10 before, with 5 between; a steady rise is no noise."""
    curve = [value + 0.5 * step for step, value in enumerate(noise(6, 100))]
    sizes = sizes_of(curve)

    assert [0.0] * (MIN_VALUES - 1) == sizes[: MIN_VALUES - 1]
    assert 0 < sizes[MIN_VALUES - 1]
    changes = [sum(curve[n - 10 : n]) / 10 - sum(curve[n - 25 : n - 15]) / 10 for n in range(25, 101)]
    earlier = changes[:-15]
    centre = sum(earlier) / len(earlier)
    unit = math.sqrt(sum((each - centre) ** 2 for each in earlier) / (len(earlier) - 15))
    assert changes[-1] / unit == pytest.approx(sizes[-1])


def test_the_unit_is_at_least_the_standard_error_of_the_two_means():
    """A spread of 5 after one of 0.1: the earlier changes are too small a unit."""
    calm, wild, low = [[size * (-1) ** step for step in range(300)] for size in (0.1, 5.0, 5.0)]
    values = [*calm[:200], *wild[:15], *[value - 20 for value in low[:10]]]
    sizes = sizes_of(values)
    old, new = values[-25:-15], values[-10:]
    half = [pvariance([b - a for a, b in pairwise(each)]) / 2 for each in (old, new)]

    assert sizes[-1] == pytest.approx(-20 / math.sqrt(sum(half) / 10))


def test_the_unit_is_that_of_the_newest_changes():
    """A run that has become calm is measured by its calm."""
    change = Change()
    for value in [100 * each for each in noise(7, 300)]:
        change.add(value)
    calm = sizes_of(noise(8, 400), change)
    expected = sizes_of(noise(8, 400))

    assert calm[-100:] == pytest.approx(expected[-100:])


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.001, 0.01, 0.99, 0.999])
def test_rare_scores_of_a_few_pictures_are_no_change(share):
    """The mean of 16 scores of 0 or 1 with nearly all of them equal; 9 is the bound of 60 runs, as above."""

    def clean(seed):
        dice = random.Random(seed)
        return [sum(dice.random() < share for _ in range(16)) / 16 for _ in range(500)]

    rising = [float(step) for step in range(500)]
    found = [alarm((rising, clean(FRESH + number))) for number in range(60)]

    assert sum(step is not None for step in found) <= 9


def test_a_score_that_never_changes_has_no_size():
    """There is no unit; what follows is measured when the first changes have one."""
    change = Change()
    assert {0.0} == {*sizes_of([0.7] * 300, change)}
    assert {0.0} == {*sizes_of([0.1] * 10, change)}


def test_the_rate_selects_the_threshold():
    """The next lower calibrated one."""
    assert THRESHOLDS[0.05] == Divergence().threshold == Divergence(0.09).threshold
    assert THRESHOLDS[0.01] == Divergence(0.05 / 3).threshold
    for rate in (0.001, 0.5, float("nan")):
        with pytest.raises(ValueError, match=r"is 0\.002 to 0\.1"):
            Divergence(rate)
    assert sorted(THRESHOLDS.values()) == list(THRESHOLDS.values())
