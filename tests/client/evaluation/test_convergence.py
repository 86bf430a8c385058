"""Alpha from every number of raters."""

import numpy as np
import pytest

from scoregate.evaluation import BadColumn, alpha, convergence

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


@pytest.mark.parametrize(
    ("rows", "said"),
    [([("u", "a", 1), ("v", "a", 2)], "one rater"), ([("u", "a", 1), ("u", "b", 1)], "differ")],
)
def test_one_annotator_cannot_converge(rows, said):
    """Nor can ratings that are all the same."""
    with pytest.raises(BadColumn, match=said):
        convergence(*zip(*rows, strict=True))
