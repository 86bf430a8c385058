"""Alpha from every number of raters."""

import numpy as np
import pytest

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Scale
from scoregate.evaluation.raters import alpha, convergence

RANDOM = np.random.default_rng(0)
TRUE = RANDOM.integers(1, 6, 40)
ROWS = [
    (f"u{unit}", f"r{rater}", float(np.clip(TRUE[unit] + RANDOM.integers(-1, 2), 1, 5)))
    for unit in range(40)
    for rater in range(6)
]
COLUMNS = tuple(zip(*ROWS, strict=True))


def test_all_raters_give_alpha_and_fewer_a_band_around_their_mean():
    """The band of all has no width."""
    found = convergence(*COLUMNS)
    last = found.steps[-1]

    assert [2, 3, 4, 5, 6] == [step.k for step in found.steps]
    assert [15, 20, 15, 6, 1] == [step.subsets for step in found.steps]
    assert last.mean == last.low == last.high == pytest.approx(alpha(*COLUMNS).interval)
    assert all(step.low <= step.mean <= step.high for step in found.steps)
    assert found.steps[0].high - found.steps[0].low > found.steps[3].high - found.steps[3].low


def test_a_mean_is_that_of_the_alphas_of_subsets():
    """Here of two raters out of three."""
    rows = [row for row in ROWS if row[1] in ("r0", "r1", "r2")]
    found = convergence(*zip(*rows, strict=True), level="ordinal")
    expected = [
        alpha(*zip(*(row for row in rows if row[1] != left_out), strict=True)).ordinal
        for left_out in ("r0", "r1", "r2")
    ]

    assert np.mean(expected) == pytest.approx(found.steps[0].mean)


def test_no_more_subsets_than_wanted_are_drawn():
    """All different, and the same for the same seed."""
    first, again = (convergence(*COLUMNS, samples=4, seed=3) for _ in range(2))

    assert first == again
    assert [4, 4, 4, 4, 1] == [step.subsets for step in first.steps]


def test_raters_without_a_common_unit_have_no_alpha():
    """Such a subset is counted."""
    rows = [("u", "a", 1), ("u", "b", 2), ("v", "b", 4), ("v", "c", 5), ("w", "b", 1), ("w", "c", 2)]
    found = convergence(*zip(*rows, strict=True))

    assert 1 == found.steps[0].undefined


RATED = [  # by a, b and c: two pictures of each of three generators
    *zip(["x1", "x2", "y1", "y2", "z1", "z2"], "a" * 6, [1, 1, 2, 2, 4, 3], strict=True),
    *zip(["x1", "x2", "y1", "y2", "z1", "z2"], "b" * 6, [2, 2, 1, 1, 5, 5], strict=True),
    *zip(["x1", "x2", "y1", "y2", "z1", "z2"], "c" * 6, [1, 2, 3, 3, 5, 5], strict=True),
]


def generators(rows):
    """The first letter of each unit."""
    return [unit[0] for unit, _, _ in rows]


def test_the_order_of_generators_is_compared_with_the_one_of_all_raters():
    """All of them say x < y < z, and b alone that y < x: rho is 1/2 there."""
    found = convergence(*zip(*RATED, strict=True), model=generators(RATED)).order

    assert [1, 2, 3] == [step.k for step in found]
    assert (1 + 0.5 + 1) / 3 == pytest.approx(found[0].mean)
    assert (0.525, 1) == pytest.approx((found[0].low, found[0].high))
    assert (1, 1, 1, 1) == pytest.approx((found[2].mean, found[2].low, found[2].high, found[2].subsets))


def test_a_picture_with_many_ratings_counts_as_much_as_one_with_few():
    """The mean of y's ratings is below x's, as its bad picture has three; that of its pictures is above."""
    rows = [("x1", "a", 2.5), ("y1", "a", 1), ("y1", "b", 1.2), ("y1", "c", 1), ("y2", "a", 5)]
    found = convergence(*zip(*rows, strict=True), model=[*"xyyyy"]).order

    assert 1 == pytest.approx(found[0].mean)
    assert (1, 2) == (found[0].subsets, found[0].undefined)


def test_raters_who_saw_not_every_generator_or_rate_all_the_same_have_no_order():
    """Such a subset is counted."""
    rows = [*RATED, ("x1", "d", 5), *((unit, "e", 3) for unit in ("x1", "y1", "z1"))]
    found = convergence(*zip(*rows, strict=True), model=generators(rows)).order

    assert (3, 2) == (found[0].subsets, found[0].undefined)


def test_ratings_outside_the_scale_order_nothing():
    """Their generators go with them."""
    rows = [("x1", "d", 6), *RATED]
    inside = convergence(*zip(*rows, strict=True), model=generators(rows), scale=Scale(1, 5)).order

    assert convergence(*zip(*RATED, strict=True), model=generators(RATED)).order == inside


@pytest.mark.parametrize(
    ("model", "said"),
    [("x" * 18, "one generator, x"), ("xxyyzz" * 2 + "yxyyzz", "two generators")],
)
def test_generators_must_be_several_and_each_unit_has_one(model, said):
    """One line about the column."""
    with pytest.raises(ColumnError, match=said):
        convergence(*zip(*RATED, strict=True), model=[*model])


def test_generators_that_all_raters_like_the_same_have_no_order():
    """Spearman's correlation is not defined there."""
    rows = [("x", "a", 1), ("y", "a", 2), ("x", "b", 2), ("y", "b", 1)]
    with pytest.raises(ColumnError, match="same score"):
        convergence(*zip(*rows, strict=True), model=["x", "y", "x", "y"])


@pytest.mark.parametrize(
    ("rows", "said"),
    [([("u", "a", 1), ("v", "a", 2)], "one rater"), ([("u", "a", 1), ("u", "b", 1)], "differ")],
)
def test_one_annotator_cannot_converge(rows, said):
    """Nor can ratings that are all the same."""
    with pytest.raises(ColumnError, match=said):
        convergence(*zip(*rows, strict=True))
