"""Error rates from drawn rows: Hájek's estimates, and their intervals."""

from fractions import Fraction

import numpy as np
import pytest

from scoregate.report.decisions.rates import DrawnRow, error_rates

# 5 of 50 accepted rows were drawn, 4 of 10 for review, and all 4 rejected ones; a row of each has no label.
ROWS = [
    *[DrawnRow("accept", 0.1, good) for good in (1.0, 1.0, 0.0, 0.5, None)],
    *[DrawnRow("review", 0.4, good) for good in (1.0, 0.0, 0.0, None)],
    *[DrawnRow("reject", 1.0, good) for good in (0.0, 0.0, 1.0, None)],
]


def test_each_row_stands_for_the_rows_of_its_decision():
    """By hand: labelled rows weigh 50/4, 10/3 and 4/3."""
    accept, review, reject = Fraction(50, 4), Fraction(10, 3), Fraction(4, 3)
    bad = accept * Fraction(3, 2) + review * 2 + reject * 2
    good = accept * Fraction(5, 2) + review + reject
    found = error_rates(ROWS)

    assert float(accept * Fraction(3, 2) / bad) == pytest.approx(found.false_accept.value)
    assert float(reject / good) == pytest.approx(found.false_reject.value)


def test_the_rates_of_a_whole_log_are_plain_shares():
    """Where every row was drawn and labelled no weight differs."""
    rows = [DrawnRow("accept", 1.0, 1.0)] * 6 + [DrawnRow("accept", 1.0, 0.0)] * 2
    rows += [DrawnRow("reject", 1.0, 0.0)] * 6 + [DrawnRow("reject", 1.0, 1.0)] * 4
    found = error_rates(rows)

    assert (2 / 8, 4 / 10) == (
        pytest.approx(found.false_accept.value),
        pytest.approx(found.false_reject.value),
    )


def test_estimates_of_many_drawings_have_the_rate_of_all_rows_as_their_mean():
    """Of 1,000 rows with known labels, 120 are drawn each time, as `sample` does; the interval holds it."""
    random = np.random.default_rng(0)
    share = {"accept": 0.7, "review": 0.5, "reject": 0.1}
    sizes = {"accept": 700, "review": 200, "reject": 100}
    log = {name: (random.random(size) < share[name]).astype(float) for name, size in sizes.items()}
    bad = {name: (1 - labels).sum() for name, labels in log.items()}
    true = bad["accept"] / sum(bad.values())
    values, held = [], 0
    for seed in range(60):
        rows = [
            DrawnRow(name, 40 / len(labels), good)
            for name, labels in log.items()
            for good in random.choice(labels, 40, replace=False)
        ]
        found = error_rates(rows, seed=seed).false_accept
        values.append(found.value)
        low, high = found.interval
        held += low <= true <= high

    assert abs(np.mean(values) - true) < 3 * np.std(values) / 60**0.5
    assert held >= 50


def test_the_interval_is_of_labelled_rows_that_are_drawn_again_within_their_decision():
    """Its ends are near those of an independent drawing; a seed gives the same ones again."""
    random = np.random.default_rng(7)
    labelled = {
        name: [row for row in ROWS * 5 if row.decision == name and row.good is not None]
        for name in ("accept", "review", "reject")
    }
    drawn = {"accept": 25, "review": 20, "reject": 20}
    estimates = []
    for _ in range(4000):
        above = below = 0.0
        for name, rows in labelled.items():
            for place in random.integers(len(rows), size=len(rows)):
                weight = drawn[name] / len(rows) / rows[place].probability * (1 - rows[place].good)
                below += weight
                above += weight * (name == "accept")
        estimates.append(above / below)
    low, high = np.percentile(estimates, (2.5, 97.5))
    found = error_rates(ROWS * 5).false_accept

    assert (pytest.approx(low, abs=0.03), pytest.approx(high, abs=0.03)) == found.interval
    assert found == error_rates(ROWS * 5).false_accept
    assert found.interval != error_rates(ROWS * 5, seed=1).false_accept.interval


@pytest.mark.parametrize(
    ("bad", "value", "note"),
    [
        ("reject", 0.0, "none of the labelled bad rows is accepted"),
        ("accept", 1.0, "all labelled bad rows are accepted"),
    ],
)
def test_a_rate_that_no_drawing_changes_has_no_interval(bad, value, note):
    """An interval from 0 to 0 would say that it is sure."""
    chances = {"accept": 0.1, "reject": 1.0}
    rows = [
        DrawnRow(name, chances[name], float(name != bad)) for name in ("accept", "reject") for _ in range(9)
    ]
    found = error_rates(rows).false_accept

    assert (value, None, f"no interval: {note}") == (found.value, found.interval, found.note)


@pytest.mark.parametrize(
    ("rows", "undrawn", "note"),
    [
        ([], (), "no drawn row of any decision has a label"),
        ([*ROWS[:9], ROWS[-1]], (), "no drawn row of reject has a label"),
        (ROWS[:9], ("reject",), "no drawn row of reject has a label"),
    ],
)
def test_a_decision_without_a_labelled_row_leaves_the_rates_unknown(rows, undrawn, note):
    """An estimate without it would be of other rows."""
    for each in error_rates(rows, undrawn):
        assert (None, None, note) == (each.value, each.interval, each.note)


def test_labels_of_one_kind_leave_the_other_rate_unknown():
    """No bad row has a label: of these there is no share."""
    found = error_rates([DrawnRow("accept", 0.5, 1.0)] * 3 + [DrawnRow("reject", 0.5, 1.0)])

    assert (None, "no labelled row is bad") == (found.false_accept.value, found.false_accept.note)
    assert 0.25 == found.false_reject.value
