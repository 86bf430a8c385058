"""Pairs: which are compared, win rates, and the strengths that verdicts come to."""

from itertools import combinations
from math import isfinite, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from service.core.errors import ModelFault
from service.scoring.win_rates import FailedPair, Pair, Schedule, matching, ranking, strengths, win_rates

WINNERS = st.sampled_from(["a", "b", "tie"])


@st.composite
def tournaments(draw):
    """A number of images, and verdicts on some of their pairs."""
    count = draw(st.integers(2, 12))
    every = list(combinations(range(count), 2))
    some = draw(st.lists(st.sampled_from(every), unique=True))
    return count, [Pair(a, b, draw(WINNERS)) for a, b in some]


def complete(count, better):
    """All pairs of *count* images; *better* decides."""
    return [Pair(a, b, better(a, b)) for a, b in combinations(range(count), 2)]


def played(schedule, count, better):
    """The pairs of all rounds, with verdicts."""
    done, rounds = [], []
    while coming := schedule.next_round(count, done):
        rounds.append(coming)
        done += [Pair(a, b, better(a, b)) for a, b in coming]
    return done, rounds


@given(st.integers(2, 32), st.data())
def test_win_rates_of_all_pairs_sum_to_half_the_images(count, data):
    """Whoever wins: a tie is half a point for each."""
    rates = win_rates(count, complete(count, lambda a, b: data.draw(WINNERS)))

    assert count / 2 == pytest.approx(sum(rates))
    assert all(0 <= rate <= 1 for rate in rates)


@given(tournaments())
def test_only_images_without_a_pair_have_no_numbers(tournament):
    """All numbers are finite, whoever wins everything, and the standard errors are below the prior's."""
    count, pairs = tournament
    inside = {each for pair in pairs for each in (pair.a, pair.b)}
    rates, found = win_rates(count, pairs), strengths(count, pairs)

    for index in range(count):
        assert (index in inside) == (rates[index] is not None) == (found[index] is not None)
        if index in inside:
            assert isfinite(found[index].value)
            assert 0 < found[index].stderr < 1
    assert sorted(ranking(found)) == sorted(inside)
    assert 0 == pytest.approx(sum(each.value for each in found if each), abs=1e-9)


@given(tournaments())
def test_strengths_are_the_most_probable_ones(tournament):
    """A general optimiser finds the same."""
    count, pairs = tournament
    if not pairs:
        return
    share = {"a": 1.0, "b": 0.0, "tie": 0.5}

    def loss(values):
        total = 0.5 * float(values @ values)
        for pair in pairs:
            ahead, won = values[pair.a] - values[pair.b], share[pair.winner]
            total += won * np.logaddexp(0, -ahead) + (1 - won) * np.logaddexp(0, ahead)
        return total

    best = minimize(loss, np.zeros(count), method="BFGS", options={"gtol": 1e-8}).x
    found = strengths(count, pairs)

    for index, each in enumerate(found):
        assert (each.value if each else 0.0) == pytest.approx(best[index], abs=1e-5)


def test_two_images_have_the_strengths_of_the_closed_form():
    """
    One win: s = 1 / (1 + exp(2 s)); the posterior precision of a difference is 1 / 2 + p (1 - p).

    With the mean 0 each strength is half of the difference, and so is its error.
    """
    first, second = strengths(2, [Pair(0, 1, "a")])

    assert first.value == pytest.approx(1 / (1 + np.exp(2 * first.value)))
    assert second.value == pytest.approx(-first.value)
    curve = first.value * (1 - first.value)
    assert first.stderr == second.stderr == pytest.approx(sqrt(1 / (1 / 2 + curve)) / 2)


@given(tournaments())
def test_the_errors_are_those_of_strengths_minus_their_mean(tournament):
    """By drawings of the normal approximation, made exact: the factor of its covariance, minus its mean."""
    count, pairs = tournament
    found = [each for each in strengths(count, pairs) if each]
    inside = sorted({each for pair in pairs for each in (pair.a, pair.b)})
    precision = np.eye(len(inside))
    for pair in pairs:
        apart = np.array([(image == pair.a) - (image == pair.b) for image in inside], float)
        p = 1 / (1 + np.exp(-apart @ [each.value for each in found]))
        precision += p * (1 - p) * np.outer(apart, apart)
    factor = np.linalg.cholesky(np.linalg.inv(precision)) if inside else precision
    centred = factor - factor.mean(axis=0) if inside else factor

    assert [each.stderr for each in found] == pytest.approx(np.sqrt((centred**2).sum(axis=1)))


def test_the_ranking_follows_the_strengths_and_then_the_request():
    """Equal images keep their order."""
    assert [3, 2, 1, 0] == ranking(strengths(4, complete(4, lambda a, b: "b")))
    assert [0, 1, 2] == ranking(strengths(3, complete(3, lambda a, b: "tie")))
    assert [0, 1] == ranking(strengths(3, [Pair(0, 1, "tie")]))
    assert [None] * 3 == strengths(3, [])


@given(st.integers(2, 32), st.integers(1, 31), st.sampled_from(["swiss", "anchor"]), st.data())
def test_a_schedule_has_k_times_n_different_pairs(count, per_image, kind, data):
    """Or all, if there are fewer; also if some have failed."""
    schedule, done = Schedule(kind, per_image), []
    while coming := schedule.next_round(count, done):
        for a, b in coming:
            failed = data.draw(st.integers(0, 9)) == 0
            done.append(FailedPair(a, b, ModelFault()) if failed else Pair(a, b, data.draw(WINNERS)))

    assert len(done) == schedule.pairs(count) == min(per_image * count, count * (count - 1) // 2)
    assert len({(pair.a, pair.b) for pair in done}) == len(done)
    assert all(pair.a < pair.b for pair in done)


@given(st.integers(2, 32), st.integers(1, 31), st.data())
def test_no_image_of_swiss_has_more_than_one_pair_above_another(count, per_image, data):
    """After each round, whoever wins or fails; at the end all have twice as many as pairs for each image."""
    schedule, done = Schedule("swiss", per_image), []
    in_rounds = 4 * per_image <= count
    while coming := schedule.next_round(count, done):
        for a, b in coming:
            failed = data.draw(st.integers(0, 9)) == 0
            done.append(FailedPair(a, b, ModelFault()) if failed else Pair(a, b, data.draw(WINNERS)))
        games = [sum(each in (pair.a, pair.b) for pair in done) for each in range(count)]
        assert max(games) - min(games) <= 1
        assert not in_rounds or len({each for pair in coming for each in pair}) == 2 * len(coming)

    assert {min(2 * per_image, count - 1)} == set(games)


def test_two_images_that_have_met_take_over_a_pair_of_others():
    """The last two of a round, so that all have a pair; the partners are those of the most similar points."""
    met = {frozenset(pair) for pair in [(0, 1), (2, 3), (4, 5)]}

    assert [(0, 2), (1, 3), (4, 6), (5, 7)] == sorted(matching(range(8), met, [9, 9, 9, 9, 1, 1, 1, 1]))
    met |= {frozenset((6, 7)), frozenset((4, 6)), frozenset((5, 7))}
    assert [(0, 2), (1, 3), (4, 7), (5, 6)] == sorted(matching(range(8), met, [9, 9, 9, 9, 1, 1, 1, 1]))
    assert [(0, 2), (1, 3)] == sorted(matching(range(4), {frozenset((2, 3))}, [3, 3, 2, 1]))


def test_a_round_of_swiss_has_each_image_once_and_pairs_equal_points():
    """The winners of the first round meet in the second."""
    done, rounds = played(Schedule("swiss", 1), 8, lambda a, b: "b")

    assert [4, 4] == list(map(len, rounds))
    assert all(len({each for pair in coming for each in pair}) == 8 for coming in rounds)
    assert all((a in (1, 3, 5, 7)) == (b in (1, 3, 5, 7)) for a, b in rounds[1])
    assert 8 == len(done)


def test_of_an_odd_number_every_image_is_left_out_in_turn():
    """Those that rested meet in the last round, each two in turn."""
    done, rounds = played(Schedule("swiss", 2), 9, lambda a, b: "b")
    [*rested] = [min({*range(9)}.difference(*pairs)) for pairs in rounds[:4]]

    assert [4, 4, 4, 4, 2] == list(map(len, rounds))
    assert 4 == len({*rested})
    assert {frozenset(rested[:2]), frozenset(rested[2:])} == set(map(frozenset, rounds[4]))
    assert 18 == len(done)


def test_anchors_are_the_first_images():
    """With k pairs an image, the first k meet nearly all others."""
    done, rounds = played(Schedule("anchor", 2), 6, lambda a, b: "a")

    assert 1 == len(rounds)
    assert 12 == len(done)
    met = [(pair.a, pair.b) for pair in done]
    assert [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 2), (1, 3), (1, 4), (1, 5)] == met[:9]
