"""T2IscoreScore on graphs that are small enough to count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from scoregate.errors import ColumnError
from scoregate.evaluation.ts2 import of_current, of_released, separation, ts2

# Graph 0 of the released data under blip1_dsg.
NODES = {
    "0": np.array([1.0]),
    "1a": np.array([0.6, 0.8, 0.6, 0.6, 0.6]),
    "1b": np.array([0.8, 1.0, 0.8]),
    "2": np.array([0.2, 0.2, 0.6]),
}


def test_the_papers_version_visits_level_0_twice():
    """So its walks have 10 and 8 pictures instead of 9 and 7."""
    assert (0.893634, 0.888889, 0.333333) == pytest.approx(of_released("0", NODES), abs=1e-6)


def test_the_current_version_takes_pairs_of_nodes():
    """And walks, weighted by their pictures, for the rank alone."""
    assert (0.860597, 0.866667, 0.4) == pytest.approx(of_current("0", NODES), abs=1e-6)


def test_several_nodes_of_level_0_cross_in_the_papers_version():
    """Two of them give four walks: each with itself, and two cross pairs."""
    nodes = {"0": np.array([1.0, 0.9]), "0b": np.array([0.2]), "1": np.array([0.5])}
    with_itself = [(2 * 2 + 1, 1.0, 0.95 - 0.5), (2 * 1 + 1, 1.0, 0.2 - 0.5)]
    crossed = (2 + 1 + 1, 2 / 3, 0.7 - 0.5)
    walks = [*with_itself, crossed, crossed]
    total = sum(count for count, _, _ in walks)
    expected = [sum(walk[0] * walk[at] for walk in walks) / total for at in (1, 2)]

    assert expected == pytest.approx(of_released("x", nodes)[1:])


def test_a_missing_score_is_counted_and_leaves_its_node_out_of_pairs_in_the_current_version():
    """The paper's version leaves out the picture alone."""
    scores = [1.0, 0.5, float("nan"), 0.0]
    nodes = ["0", "1", "1", "2"]
    paper = ts2(scores, ["g"] * 4, nodes, "released")
    current = ts2(scores, ["g"] * 4, nodes, "current")

    assert (4, 1, 1) == (paper.images, paper.dropped, paper.graphs)
    assert 0.5 == paper.delta_raw
    assert 0.5 == paper.std
    assert 1.0 == paper.delta
    assert 1.0 == current.delta  # of 0 and 2, the only whole nodes


def test_a_graph_of_one_score_is_counted_as_undefined():
    """It has no walk of two, so it is in no mean."""
    found = ts2([1, 0, 0.5, float("nan")], ["a", "a", "b", "b"], ["0", "1", "0", "1"], "current")

    assert (1, 1) == (found.graphs, found.undefined)
    assert 1 == pytest.approx(found.rank)


def test_constant_scores_of_a_graph_have_rank_0():
    """Spearman has none there."""
    found = ts2([1, 1, 1, 0], ["a", "a", "b", "b"], ["0", "1", "0", "1"], "current")

    assert 0.5 == pytest.approx(found.rank)


def test_partitions_need_ids_that_are_numbers():
    """They are the ranges of the released data."""
    assert {} == ts2([1, 0], ["a", "a"], ["0", "1"], "released").partitions
    assert ["real"] == list(ts2([1, 0], ["140", "140"], ["0", "1"], "released").partitions)


@pytest.mark.parametrize(
    ("scores", "graphs", "nodes", "skip", "argument"),
    [
        ([1, 1], ["a", "a"], ["0", "1"], (), "metric"),
        ([1, 0], ["a", "a"], ["0", "one"], (), "node"),
        ([1, 0], ["a", "a"], ["0", "1"], ("b",), "graph"),
        ([1, 0], ["a", "a"], ["1", "2"], (), "node"),
        ([float("nan")] * 2, ["a", "a"], ["0", "1"], (), "metric"),
    ],
)
def test_what_is_no_graph_is_refused(scores, graphs, nodes, skip, argument):
    """Constant scores, a node without a number, an unknown graph, no level 0, and no score."""
    with pytest.raises(ColumnError) as caught:
        ts2(scores, graphs, nodes, "released", skip)
    assert argument == caught.value.argument


def test_too_many_walks_are_refused():
    """Thirty levels of two nodes would never end."""
    nodes = [f"{level}{name}" for level in range(30) for name in "ab"]
    with pytest.raises(ColumnError, match="walks"):
        ts2(list(range(60)), ["g"] * 60, nodes, "current")


SCORES = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=12)


@given(SCORES, SCORES)
def test_separation_is_scipys_kolmogorov_smirnov_statistic(a, b):
    """With ties."""
    expected = ks_2samp(a, b, method="asymp").statistic
    assert expected == pytest.approx(separation(np.array(a), np.array(b)), abs=1e-12)
