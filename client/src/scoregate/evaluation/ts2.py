"""
T2IscoreScore: does a metric fall with each error, over graphs of pictures with known errors?

Saxon et al. 2024 (arXiv 2404.04251).  A graph belongs to one prompt.  Its nodes hold pictures with the same
errors, and the digits that a node's name begins with say how many.  A walk takes nodes from level to level.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise, product
from math import prod
from typing import Any, Literal

import numpy as np

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Floats, Names, average_ranks, floats

MAX_WALKS = 100_000  # walks of one graph
PARTITIONS = (("synth", 0, 110), ("nat", 111, 135), ("real", 136, 10**9))  # ids of the data set's graphs

Version = Literal["released", "printed", "current"]
Nodes = dict[str, Floats]  # the scores of a graph's pictures; NaN if missing
SemanticValues = tuple[float, float, float]  # rank, separation, delta


@dataclass(frozen=True)
class Means:
    """Over graphs: how well a metric orders levels, keeps them apart, and by how much."""

    rank: float
    sep: float
    delta: float
    delta_raw: float
    graphs: int


@dataclass(frozen=True)
class Ts2(Means):
    """
    Attributes:
        delta: `delta_raw / std`; of the version `current` `delta_raw`.
        std: sample standard deviation of all scores, those of skipped graphs too.
        images: all images; *dropped* have no score.
        undefined: graphs without a walk of two scores; excluded from all means.
        partitions: the data set's three parts, if ids are whole numbers.
    """

    std: float
    images: int
    dropped: int
    undefined: int
    partitions: dict[str, dict[str, float]]


def ts2(metric: Any, graph: Names, node: Names, version: Version, skip: Collection[str] = ()) -> Ts2:
    """
    Return the three figures of a metric.

    Args:
        metric: a score for each picture, NaN if missing.
        version: `released` is the code of the paper's tables, `printed` the paper's equations, and `current`
            the authors' code today.
        skip: graphs to exclude from the means.  The paper's tables exclude 164.

    Raises:
        ColumnError: the scores are constant, a node's name begins with no digit, or a graph is unknown.
    """
    scores = np.array(metric, dtype=np.float64)
    there = floats(scores[~np.isnan(scores)], "metric", varied=True)
    scores[~np.isnan(scores)] = there
    std = float(there.std(ddof=1))
    graphs = graphs_of(scores, graph, node)
    if unknown := [name for name in skip if name not in graphs]:
        raise ColumnError("graph", f"there is no graph {unknown[0]} to skip")
    of_graph = GRAPH_FIGURES[version]
    values = {name: of_graph(name, nodes) for name, nodes in graphs.items() if name not in skip}
    defined = {name: each for name, each in values.items() if not np.isnan(each).any()}
    if not defined:
        raise ColumnError("graph", "no graph has a walk with two scores")
    divisor = 1.0 if version == "current" else std
    return Ts2(
        **asdict(means(list(defined.values()), divisor)),
        std=std,
        images=len(scores),
        dropped=len(scores) - len(there),
        undefined=len(values) - len(defined),
        partitions=partitions(defined, divisor),
    )


def graphs_of(scores: Floats, graph: Names, node: Names) -> dict[str, Nodes]:
    """Return the nodes of every graph, in the order of their levels."""
    rows: dict[str, dict[str, list[int]]] = {}
    for row, (name, each) in enumerate(zip(graph, node, strict=True)):
        rows.setdefault(name, {}).setdefault(each, []).append(row)
    return {
        name: {each: scores[nodes[each]] for each in sorted(nodes, key=lambda each: (level(each), each))}
        for name, nodes in rows.items()
    }


def level(node: str) -> int:
    """Return the number of errors of a node's pictures."""
    digits = re.match(r"\d+", node)
    if not digits:
        raise ColumnError("node", f"{node!r} does not begin with its number of errors")
    return int(digits[0])


def means(values: Sequence[SemanticValues], divisor: float) -> Means:
    rank, sep, delta = (float(each) for each in np.mean(values, axis=0))
    return Means(rank, sep, delta / divisor, delta, len(values))


def partitions(values: dict[str, SemanticValues], divisor: float) -> dict[str, dict[str, float]]:
    """Return the means of synthetic errors, natural images and real errors of the released data."""
    if not all(re.fullmatch(r"\d+", name) for name in values):
        return {}
    found = {}
    for part, first, last in PARTITIONS:
        if chosen := [each for name, each in values.items() if first <= int(name) <= last]:
            found[part] = asdict(means(chosen, divisor))
    return found


def of_released(name: str, nodes: Nodes) -> SemanticValues:
    """
    Return a graph's values by the code of the paper's tables: means over walks, weighted by their scores.

    Its walks visit level 0 twice.
    """
    levels = by_level(nodes)
    if 0 not in levels:
        raise ColumnError("node", f"graph {name} has no node of level 0")
    walks = [points(walk, nodes) for walk in walked(name, [levels[0], *levels.values()])]
    weights = np.array([len(scores) for _, scores in walks], dtype=np.float64)
    ranks = np.array([rank(*walk) for walk in walks])
    if not np.any(defined := ~np.isnan(ranks)):
        return np.nan, np.nan, np.nan
    seps, deltas = zip(*(steps(*walk) for walk in walks), strict=True)
    return (
        float(np.average(ranks[defined], weights=weights[defined])),
        float(np.average(seps, weights=weights)),
        float(np.average(deltas, weights=weights)),
    )


def of_printed(name: str, nodes: Nodes) -> SemanticValues:
    """Return a graph's values by equations 2, 4 and 5: plain means over walks and neighbouring nodes."""
    walks = walked(name, list(by_level(nodes).values()))
    ranks = np.array([rank(*points(walk, nodes)) for walk in walks])
    if not np.any(defined := ~np.isnan(ranks)):
        return np.nan, np.nan, np.nan
    scores = {node: each[~np.isnan(each)] for node, each in nodes.items()}
    apart = [
        (scores[a], scores[b])
        for walk in walks
        for a, b in pairwise(walk)
        if len(scores[a]) and len(scores[b])
    ]
    return float(np.mean(ranks[defined])), *gaps(apart)


def of_current(name: str, nodes: Nodes) -> SemanticValues:
    """Return a graph's values in the current version: walks for the rank, pairs of nodes for the others."""
    walks = [points(walk, nodes) for walk in walked(name, list(by_level(nodes).values()))]
    ranks = np.array([rank(*walk) for walk in walks])
    weights = np.array([len(scores) for _, scores in walks], dtype=np.float64)
    if not np.any(defined := ~np.isnan(ranks)):
        return np.nan, np.nan, np.nan
    whole = [each for each, scores in nodes.items() if not np.isnan(scores).any()]
    apart = [(nodes[a], nodes[b]) for a, b in combinations(whole, 2) if level(a) < level(b)]
    return (
        float(np.average(ranks[defined], weights=weights[defined])),
        *gaps(apart),
    )


GRAPH_FIGURES = {"released": of_released, "printed": of_printed, "current": of_current}


def gaps(pairs: Sequence[tuple[Floats, Floats]]) -> tuple[float, float]:
    """Return the mean separation and the mean fall of pairs of nodes; 0 without a pair."""
    if not pairs:
        return 0.0, 0.0
    falls = [a.mean() - b.mean() for a, b in pairs]
    return float(np.mean([separation(a, b) for a, b in pairs])), float(np.mean(falls))


def by_level(nodes: Nodes) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for node in nodes:
        found.setdefault(level(node), []).append(node)
    return found


def walked(name: str, steps: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return every choice of one node from each step."""
    count = prod(map(len, steps))
    if count > MAX_WALKS:
        raise ColumnError("graph", f"graph {name} has {count} walks, and {MAX_WALKS} are the most")
    return list(product(*steps))


def points(walk: tuple[str, ...], nodes: Nodes) -> tuple[Floats, Floats]:
    """Return level and score of the scored pictures on a walk."""
    scores = np.concatenate([nodes[node] for node in walk])
    levels = np.repeat([float(level(node)) for node in walk], [len(nodes[node]) for node in walk])
    return levels[~np.isnan(scores)], scores[~np.isnan(scores)]


def rank(levels: Floats, scores: Floats) -> float:
    """Return Spearman's rank correlation, negated; 0 if one side is constant, NaN below two."""
    if len(scores) < 2:
        return np.nan
    if np.ptp(levels) == 0 or np.ptp(scores) == 0:
        return 0.0
    return -float(np.corrcoef(average_ranks(levels), average_ranks(scores))[0, 1])


def steps(levels: Floats, scores: Floats) -> tuple[float, float]:
    """Return the mean separation of a walk's levels, and the mean fall between them; 0 without a pair."""
    groups = [scores[levels == each] for each in np.unique(levels)]
    if len(groups) < 2:
        return 0.0, 0.0
    apart = [separation(a, b) for a, b in combinations(groups, 2)]
    return float(np.mean(apart)), float(np.mean([a.mean() - b.mean() for a, b in pairwise(groups)]))


def separation(a: Floats, b: Floats) -> float:
    """Return the two-sample Kolmogorov-Smirnov statistic: the largest gap between two distributions."""
    every = np.concatenate([a, b])
    below = [np.searchsorted(np.sort(each), every, side="right") / len(each) for each in (a, b)]
    return float(np.abs(below[0] - below[1]).max())
