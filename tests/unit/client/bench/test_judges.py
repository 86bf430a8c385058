"""Judges against each other: two generators are compared wherever they share an item."""

import pytest

from scoregate.bench.metrics.gecko2k import ordered

SCORES = {(f"{n}", model): n / 10 + (model == "a") for n in range(12) for model in ("a", "b")}


def test_generators_that_share_no_item_keep_the_tests_of_the_others():
    """*c* has items of its own, and shares one with *b* alone."""
    alone = {("c0", "c"): 0.5, ("11", "c"): 0.1, **{each: value for each, value in SCORES.items()}}
    del alone["11", "a"]
    found = {(test.a, test.b): test.relation for test in ordered(alone, 0.05)}

    assert {("a", "b"): ">", ("b", "c"): "="} == found


@pytest.mark.parametrize("scores", [{}, {("0", "a"): 1.0}, {("0", "a"): 1.0, ("1", "b"): 0.5}])
def test_without_two_generators_and_an_item_there_is_no_test(scores):
    """And no error."""
    assert [] == ordered(scores, 0.05)
