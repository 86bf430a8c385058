"""Pairwise accuracy: every count as counted by hand, whatever the values."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoregate.errors import ColumnError
from scoregate.evaluation import pair_accuracy as pairs
from scoregate.evaluation.pair_accuracy import pair_accuracy

FEW = st.integers(0, 4)
ROWS = st.lists(st.tuples(st.integers(0, 12), FEW, st.integers(0, 2)), min_size=3, max_size=14)


KINDS = ("concordant", "discordant", "tie of people", "tie of the metric", "tie of both")


def kind(metric, human, *, tied):
    """What a pair is, by its two differences."""
    if tied:
        return "tie of the metric" if human else "tie of both"
    if not human:
        return "tie of people"
    return "concordant" if (metric > 0) == (human > 0) else "discordant"


def by_hand(metric, human, groups, average="pairs"):
    """The best epsilon, smallest first, with its accuracy and counts, from every pair and every candidate."""
    pairs = [
        (groups[a], metric[a] - metric[b], human[a] - human[b])
        for a, b in combinations(range(len(metric)), 2)
        if groups[a] == groups[b]
    ]
    sizes = Counter(group for group, _, _ in pairs)
    found = []
    for epsilon in sorted({0, *(abs(m) for _, m, _ in pairs)}):
        kinds = [(group, kind(m, h, tied=abs(m) <= epsilon)) for group, m, h in pairs]
        right = Counter(group for group, each in kinds if each in (KINDS[0], KINDS[4]))
        of_groups = sum(Fraction(right[group], size) for group, size in sizes.items()) / len(sizes)
        accuracy = of_groups if average == "groups" else Fraction(right.total(), len(pairs))
        numbers = Counter(each for _, each in kinds)
        found.append((accuracy, epsilon, [numbers[each] for each in KINDS]))
    best = max(accuracy for accuracy, _, _ in found)
    return next(each for each in found if each[0] == best), found[0][0], len(pairs)


@given(ROWS, st.sampled_from(["groups", "pairs"]))
def test_it_is_what_counting_every_pair_at_every_epsilon_gives(rows, average):
    """With groups, and with ties of all kinds; values in tenths, whose differences are no exact floats."""
    metric, human, groups = (list(column) for column in zip(*rows, strict=True))
    try:
        found = pair_accuracy(np.array(metric) / 10, human, list(map(str, groups)), average=average)
    except ColumnError:
        assert min(len({*metric}), len({*human})) == 1 or len({*groups}) == len(groups)
        return
    (right, epsilon, counts), at_0, pairs = by_hand(metric, human, groups, average)

    assert counts == [
        found.concordant,
        found.discordant,
        found.ties_human,
        found.ties_metric,
        found.ties_both,
    ]
    assert (average, pairs) == (found.average, found.pairs)
    assert (right, at_0) == pytest.approx((found.accuracy, found.accuracy_at_0), abs=1e-12)
    assert epsilon / 10 == pytest.approx(found.epsilon)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), FEW), min_size=3, max_size=12))
def test_values_that_are_no_short_decimals_are_compared_as_they_are(rows):
    """The same counts from plain floats."""
    metric, human = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if np.ptp(metric) == 0 or np.ptp(human) == 0 or pairs.exact(metric)[1] != 1:
        return
    found = pair_accuracy(metric, human)
    (right, _, _), at_0, _ = by_hand(metric, human, [0] * len(metric))

    assert (right, at_0) == pytest.approx((found.accuracy, found.accuracy_at_0), abs=1e-12)


def test_the_mean_over_groups_is_that_of_the_papers_code():
    """Deutsch, Foster and Freitag 2023: one epsilon, and a group without a pair is in no mean."""
    metric, human = [1, 2, 3, 4, 2, 1, 5], [1, 2, 3, 4, 1, 2, 1]
    groups = ["a", "a", "a", "a", "b", "b", "c"]
    of_groups, of_pairs = (pair_accuracy(metric, human, groups, average=each) for each in ("groups", "pairs"))

    assert (pytest.approx(0.5), "groups") == (of_groups.accuracy, of_groups.average)
    assert (pytest.approx(6 / 7), "pairs") == (of_pairs.accuracy, of_pairs.average)
    assert of_groups == pair_accuracy(metric, human, groups)


def test_blocks_and_bins_do_not_change_the_result():
    """There are more pairs than in a block, and in a bin; the expected result is from all of them at once."""
    random = np.random.default_rng(0)
    human = random.integers(0, 3, 1450)
    metric = human + random.normal(0, 0.7, 1450)
    one, other = np.triu_indices(len(human), 1)
    apart, people = metric[one] - metric[other], human[one] - human[other]
    same = apart * people > 0
    gains = np.where(people == 0, 1, np.where(same, -1, 0))
    order = np.argsort(np.abs(apart))
    sums = gains[order].cumsum()
    found = pair_accuracy(metric, human)

    assert pairs.BLOCK < len(order) == found.pairs
    assert len(np.unique(pairs.bins_of(np.abs(apart), 0))) < len(order)
    assert (same.sum() + sums.max()) / len(order) == pytest.approx(found.accuracy, abs=1e-12)
    assert np.abs(apart)[order][sums.argmax()] == pytest.approx(found.epsilon)


def test_memory_does_not_grow_with_the_pairs():
    """Blocks are of one size; only the rows of the best bins are kept."""
    random = np.random.default_rng(0)
    human = random.integers(1, 6, 3200).astype(float)
    metric = human + random.normal(0, 1, 3200)
    order = np.argsort(metric)
    rows = metric[order], human[order], np.zeros(3200, np.intp), np.ones(3200)

    sizes = [len(distances) for distances, _, _ in pairs.pairs(rows)]
    assert 3200 * 3199 // 2 == sum(sizes)
    assert max(sizes) < pairs.BLOCK + 3200


@pytest.mark.parametrize(
    ("metric", "human", "group", "argument"),
    [
        ([1, 1], [1, 2], None, "metric"),
        ([1, 2], [3, 3], None, "human"),
        ([1, 2], [1, 2], ["a", "b"], "group"),
        ([1, float("nan")], [1, 2], None, "metric"),
        ([], [], None, "metric"),
    ],
)
def test_a_column_that_says_nothing_is_named(metric, human, group, argument):
    """By the argument that holds it."""
    with pytest.raises(ColumnError) as caught:
        pair_accuracy(metric, human, group)
    assert argument == caught.value.argument
