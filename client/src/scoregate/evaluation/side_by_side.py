"""
Side by side: which of two generators' pictures of a prompt do raters prefer, and does a metric agree?

As in Gecko (Wiles et al. 2024, section 4.3 and appendix D.1): the majority of the raters decides, and a tie
is "unsure".
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Names, coded, exact, floats
from scoregate.evaluation.bootstrap import Sample, means
from scoregate.evaluation.ordering import ORDER_ALPHA, signed_rank

PairKey = tuple[str, str, str]  # item, a and b; the names of the generators are in order
Vote = tuple[PairKey, int]
Majorities = Mapping[PairKey, int]  # 1 if a is preferred, -1 if b, 0 if unsure
VOTES = {"a": 1.0, "1": 1.0, "b": -1.0, "-1": -1.0, "unsure": 0.0, "0": 0.0}


@dataclass(frozen=True)
class SideBySidePair:
    """
    The choices between two generators.

    Attributes:
        wins_a, wins_b, unsure: items by the raters' majority.
        p: of the signed-rank test of the majorities 1, 0 and -1.
        relation: `>` if p is below alpha and *a* is preferred more often than *b* and than unsure, `<` if *b*
            is, else `=`.
    """

    a: str
    b: str
    items: int
    wins_a: int
    wins_b: int
    unsure: int
    z: float
    p: float
    relation: str


@dataclass(frozen=True)
class Choices:
    """
    How often a metric prefers the picture that the majority prefers.

    Attributes:
        accuracy: of the comparisons with a preference; equal scores are wrong.
        accuracy_ties_half: the same with half a point for equal scores.
        missing: comparisons with a preference that lack a score; not counted.
    """

    accuracy: float
    accuracy_ties_half: float
    comparisons: int
    correct: int
    ties_metric: int
    missing: int


def voted(answer: str) -> float:
    """Return the vote of an answer, which is a number or a word.  Raises `ValueError`."""
    text = answer.strip().lower().removesuffix(".0").removeprefix("+")
    if text not in VOTES:
        raise ValueError(f"{answer!r} is no vote: {', '.join(VOTES)}")
    return VOTES[text]


def in_order(item: Names, a: Names, b: Names, vote: Any) -> list[Vote]:
    """
    Return the comparison and the vote of each row, for the first generator by name.

    Args:
        vote: 1 for *a*, -1 for *b*, 0 for unsure; one row for each rater.

    Raises:
        ColumnError: another vote, or a generator that is compared with itself.
    """
    votes = floats(vote, "vote")
    if not np.isin(votes, (-1, 0, 1)).all():
        raise ColumnError("vote", "a vote is -1, 0 or 1")
    found = []
    for name, left, right, each in zip(item, a, b, votes, strict=True):
        if left == right:
            raise ColumnError("b", f"{left} is compared with itself, for {name}")
        turned = left > right
        place = (name, right, left) if turned else (name, left, right)
        found.append((place, int(-each if turned else each)))
    return found


def once(votes: Iterable[Vote], raters: Iterable[str]) -> None:
    """Raise `ColumnError` if a rater voted twice about the same two pictures."""
    cast = Counter((place, rater) for (place, _), rater in zip(votes, raters, strict=True))
    ((item, a, b), rater), most = cast.most_common(1)[0]
    if most > 1:
        raise ColumnError("rater", f"{rater} voted {most} times about {a} and {b} for {item}")


def majorities(votes: Iterable[Vote]) -> Majorities:
    """Return the most frequent vote of each comparison, 0 if two are."""
    cast: dict[PairKey, Counter[int]] = defaultdict(Counter)
    for place, vote in votes:
        cast[place][vote] += 1
    return {place: most_frequent(counts) for place, counts in cast.items()}


def most_frequent(votes: Counter[int]) -> int:
    (first, count), *others = votes.most_common()
    return 0 if others and others[0][1] == count else first


def side_by_side(found: Majorities, alpha: float = ORDER_ALPHA) -> list[SideBySidePair]:
    """Return the relation of each two generators that were compared."""
    by_pair: dict[tuple[str, str], list[int]] = defaultdict(list)
    for (_, a, b), vote in found.items():
        by_pair[a, b].append(vote)
    return [of_pair(a, b, votes, alpha) for (a, b), votes in sorted(by_pair.items())]


def of_pair(a: str, b: str, votes: Sequence[int], alpha: float) -> SideBySidePair:
    test, counts = signed_rank(votes), Counter(votes)
    relation = "="
    if test.p < alpha:
        more = 1 if counts[1] > counts[-1] else -1
        relation = {1: ">", -1: "<"}[more] if counts[more] > counts[0] else "="
    return SideBySidePair(a, b, len(votes), counts[1], counts[-1], counts[0], test.z, test.p, relation)


def choices(found: Majorities, scores: Mapping[tuple[str, str], float]) -> Choices:
    """
    Return how often the better score is that of the preferred picture.

    Raises:
        ColumnError: as `points`.
    """
    given = [*points(found, scores).values()]
    right, tied, count = given.count(1), given.count(0.5), len(given)
    preferences = sum(map(bool, found.values()))
    return Choices(right / count, (right + tied / 2) / count, count, right, tied, preferences - count)


def points(found: Majorities, scores: Mapping[tuple[str, str], float]) -> dict[PairKey, float]:
    """
    Return 1, 0.5 if the scores are equal, or 0 for each comparison with a preference and both scores.

    Args:
        scores: by item and generator; higher is better.

    Raises:
        ColumnError: there is no such comparison.
    """
    both = [
        (item, a, b)
        for (item, a, b), vote in found.items()
        if vote and (item, a) in scores and (item, b) in scores
    ]
    if not both:
        raise ColumnError("metric", "no comparison with a preference has both scores")
    names = sorted({(item, name) for item, *two in both for name in two})
    whole, _ = exact(floats([scores[name] for name in names], "metric"))
    of = dict(zip(names, whole.tolist(), strict=True))
    signs = [(of[item, a] > of[item, b]) - (of[item, a] < of[item, b]) for item, a, b in both]
    return {place: (1 + sign * found[place]) / 2 for place, sign in zip(both, signs, strict=True)}


def sample_of(given: Mapping[PairKey, float], cluster: Mapping[str, str] | None = None) -> Sample:
    """
    Return the sample of the items of `points`, whose figures are the accuracies.

    Args:
        cluster: of each item; by default each is drawn by itself.
    """
    places = sorted(given)
    names, units = coded([cluster[item] if cluster else item for item, _, _ in places])
    values = np.array([given[place] for place in places])
    figures = {"accuracy": (units, values == 1), "accuracy_ties_half": (units, values)}
    return means(figures, len(names), shares=figures)
