"""Generators in pairs: wins, Holm's correction, prompts needed, and figures that `evaluate` has, too."""

from math import nan

import numpy as np
import pytest

from scoregate.errors import ColumnError
from scoregate.evaluation.ordering import signed_rank
from scoregate.evaluation.versus import holm, prompts_needed, versus

NAMES = ["A"] * 4 + ["B"] * 4
PROMPTS = ["one", "two", "three", "four"] * 2


def test_wins_ties_and_losses_are_counted_on_shared_prompts():
    """0.1 + 0.2 ties with 0.3; the difference is that of the first minus the second."""
    found = versus({"m": [0.9, 0.1 + 0.2, 0.2, 0.5, 0.1, 0.3, 0.4, 0.1]}, NAMES, PROMPTS)
    [pair] = found.pairs

    assert (2, 1, 1, 4) == (pair.wins, pair.ties, pair.losses, pair.prompts)
    assert pytest.approx((0.8 + 0 - 0.2 + 0.4) / 4) == pair.difference
    assert ("A", "B") == (pair.a, pair.b)


def test_the_lower_score_wins_where_lower_is_better():
    """The difference keeps the sign of the scores."""
    a, b = [0.1] * 30, [0.2 + n / 1000 for n in range(30)]
    names, prompts = ["A"] * 30 + ["B"] * 30, [str(n) for n in range(30)] * 2
    [pair] = versus({"m": [*a, *b]}, names, prompts, lower=["m"]).pairs

    assert (30, 0, "A") == (pair.wins, pair.losses, pair.better)
    assert pair.difference < 0


def test_several_pictures_of_a_prompt_are_averaged():
    """A prompt counts once, whatever the number of its pictures."""
    [pair] = versus(
        {"m": [0.0, 1.0, 0.4, 0.9, 0.8]}, ["A", "A", "B", "A", "B"], ["x", "x", "x", "y", "y"]
    ).pairs

    assert (2, 2) == (pair.prompts, pair.wins)
    assert pytest.approx(0.1) == pair.difference


def test_a_missing_score_is_counted_on_its_side():
    """The pair is compared on the other prompts, and the means are of all scores."""
    found = versus({"m": [0.9, nan, 0.2, 0.5, 0.1, 0.3, nan, 0.1]}, NAMES, PROMPTS)
    [pair] = found.pairs

    assert (2, {"A": 1, "B": 1}) == (pair.prompts, pair.missing)
    assert pytest.approx((0.9 + 0.2 + 0.5) / 3) == pair.means["A"]
    assert [(3, 3, 1, 1)] * 2 == [(e.prompts, e.pictures, e.missing, e.unscored) for e in found.means]


def test_a_generator_without_scores_has_no_difference():
    """Nothing is computed from nothing."""
    [pair] = versus({"m": [0.9, 0.1, 0.2, 0.5, nan, nan, nan, nan]}, NAMES, PROMPTS).pairs

    assert (None, None, None, None, 0) == (pair.difference, pair.p, pair.p_holm, pair.better, pair.prompts)
    assert pair.means["B"] is None


def test_p_is_corrected_over_pairs_and_metrics():
    """Three generators and two metrics are six tests."""
    random = np.random.default_rng(0)
    names = [name for name in "ABC" for _ in range(40)]
    prompts = [str(n) for n in range(40)] * 3
    found = versus({m: random.random(120) for m in ("m", "w")}, names, prompts)

    assert 6 == len(found.pairs)
    assert holm([pair.p for pair in found.pairs]) == [pair.p_holm for pair in found.pairs]


def test_holm_multiplies_by_the_number_of_tests_that_are_left():
    """A larger p is never corrected to a smaller one (Holm 1979)."""
    assert pytest.approx([0.03, 0.06, 0.06, 0.02]) == holm([0.01, 0.04, 0.03, 0.005])
    assert [1.0, 1.0] == holm([0.9, 0.8])


@pytest.mark.parametrize("size", [0.2, 0.35, 0.5])
def test_the_prompts_needed_give_a_power_of_80_percent(size):
    """With so many normal differences of this size the test is significant in four runs of five."""
    random = np.random.default_rng(1)
    sample = random.normal(size=5000)
    sample = (sample - sample.mean()) / sample.std(ddof=1) + size
    needed = prompts_needed(sample)
    runs = [signed_rank(random.normal(size, 1, needed)).p < 0.05 for _ in range(2000)]

    assert 0.8 == pytest.approx(np.mean(runs), abs=0.03)


def test_no_number_of_prompts_shows_no_difference():
    """A difference that is the same on all prompts still needs six for a p below 0.05."""
    assert prompts_needed(np.zeros(9)) is None
    assert prompts_needed(np.array([0.1, -0.1])) is None
    assert prompts_needed(np.array([0.1])) is None
    assert 6 == prompts_needed(np.full(9, 0.1))


def test_one_generator_is_refused():
    """There is nothing to compare with."""
    with pytest.raises(ColumnError, match="two generators are needed"):
        versus({"m": [0.1]}, ["A"], ["x"])


@pytest.mark.parametrize("missing", [0, 3])
def test_means_intervals_and_p_equal_those_of_evaluate(written, evaluate, missing):
    """To 1e-12: both draw the same prompts, and test the same differences."""
    random = np.random.default_rng(2)
    rows = [
        {"generator": name, "prompt": f"prompt {n // 2}", "m": round(float(random.random()), 3)}
        for name in "ABC"
        for n in range(50)
    ]
    rows = rows[missing:]
    columns = [[row[name] for row in rows] for name in ("m", "generator", "prompt")]
    path = written(rows)
    means = evaluate("means", "--scores", path, "--metric", "m", "--bootstrap", 1000)
    ordering = evaluate("ordering", "--scores", path, "--value", "m")

    found = versus({"m": columns[0]}, *columns[1:])

    for each in found.means:
        assert means["mean"][each.generator] == pytest.approx(each.mean, rel=1e-12)
        assert means["interval"][each.generator] == pytest.approx(each.interval, rel=1e-12)
    ps = {(each["a"], each["b"]): each["p"] for each in ordering["pairs"]}
    assert ps == pytest.approx({(pair.a, pair.b): pair.p for pair in found.pairs}, rel=1e-12)
