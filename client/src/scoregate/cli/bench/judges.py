"""Metrics and templates as judges of pictures, against each other, for all prompts and those of each tag."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoregate.evaluation.ordering import Pair
    from scoregate.evaluation.sxs import Majorities
    from scoregate.evaluation.sxs import Pair as Compared

    Tested = Pair | Compared

Tags = Mapping[str, Sequence[str]]  # by item; none for one that is left out
Scores = Mapping[tuple[str, str], float]  # by item and generator
Judges = Mapping[str, Scores]
Rows = list[dict[str, Any]]
Relations = dict[tuple[str, str], str]  # of two generators: >, < or =

ALL = "all"
SXS = "sxs"
MAJORITY = "majority"
OPPOSITE = {(">", "<"), ("<", ">")}


def parts(tags: Tags) -> Iterator[tuple[str, set[str]]]:
    """Yield all items that are kept, and those of each tag."""
    yield ALL, {item for item, each in tags.items() if each}
    for tag in sorted({tag for each in tags.values() for tag in each}):
        yield tag, {item for item, each in tags.items() if tag in each}


def within(found: Mapping[Any, Any], items: set[str]) -> dict[Any, Any]:
    """Return the entries about *items*; a key begins with its item."""
    return {place: value for place, value in found.items() if place[0] in items}


def correlations(metrics: Judges, people: Judges, tags: Tags) -> Rows:
    """Return a row for each metric and tag, with its correlations with people's scores by template."""
    return [
        {"metric": metric, "tag": tag} | of_templates(within(scores, items), people)
        for metric, scores in metrics.items()
        for tag, items in parts(tags)
        if people
    ]


def of_templates(scores: Scores, people: Judges) -> dict[str, Any]:
    """Return correlations, None if undefined, over the pictures with both scores, by template."""
    from scoregate.evaluation import BadColumn, correlation

    row: dict[str, dict[str, Any]] = {"pearson": {}, "spearman": {}, "pictures": {}}
    for template, ratings in people.items():
        both = [place for place in scores if place in ratings]
        row["pearson"][template] = row["spearman"][template] = None
        row["pictures"][template] = len(both)
        with suppress(BadColumn):  # for example, all scores are the same
            found = correlation([scores[place] for place in both], [ratings[place] for place in both])
            row["pearson"][template], row["spearman"][template] = found.pearson, found.spearman
    return row


def accuracies(judges: Judges, votes: "Majorities", tags: Tags) -> Rows:
    """Return a row for each judge and tag with a comparison: how often it prefers what raters prefer."""
    from scoregate.evaluation import BadColumn
    from scoregate.evaluation.sxs import choices

    rows: Rows = []
    for judge, scores in judges.items():
        for tag, items in parts(tags):
            with suppress(BadColumn):  # no comparison with a preference has both scores
                rows.append({"judge": judge, "tag": tag, **asdict(choices(within(votes, items), scores))})
    return rows


def orderings(metrics: Judges, people: Judges, votes: "Majorities", tags: Tags, alpha: float) -> Rows:
    """
    Return a row for each tag and judge, with the relation of each two generators and its p.

    People's is the relation that most of the templates and the votes give, as in Gecko's section 6.4.
    """
    from scoregate.evaluation.sxs import side_by_side

    rows: Rows = []
    for tag, items in parts(tags):
        tests = {name: ordered(within(scores, items), alpha) for name, scores in people.items()}
        tests[SXS] = side_by_side(within(votes, items), alpha)
        most = majority(tests.values())
        rows += [{"judge": name, "tag": tag, **signs(found)} for name, found in tests.items() if found]
        if most:
            rows.append({"judge": MAJORITY, "tag": tag, "relation": {pair(*two): most[two] for two in most}})
        for name, scores in metrics.items():
            if found := ordered(within(scores, items), alpha):
                rows.append({"judge": name, "tag": tag, **signs(found), **agreement(found, most)})
    return rows


def ordered(scores: Scores, alpha: float) -> "Sequence[Tested]":
    """Return the test of each two generators that share an item, the better by means."""
    from scoregate.evaluation import BadColumn

    with suppress(BadColumn):
        return tested(scores, alpha)
    found: list[Any] = []
    for two in combinations(sorted({model for _, model in scores}), 2):
        with suppress(BadColumn):  # they share no item, or all their scores are equal
            found += tested({place: score for place, score in scores.items() if place[1] in two}, alpha)
    return found


def tested(scores: Scores, alpha: float) -> "Sequence[Tested]":
    """Return the test of each two generators.  Raises `BadColumn` if one of them is not possible."""
    from scoregate.evaluation import ordering

    names, models = [item for item, _ in scores], [model for _, model in scores]
    return ordering([*scores.values()], models, names, alpha=alpha, better="means").pairs


def majority(tests: "Iterable[Sequence[Tested]]") -> Relations:
    """Return the relation of each two generators that most of *tests* give; none of two as frequent."""
    given: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for found in tests:
        for each in found:
            given[each.a, each.b][each.relation] += 1
    ranked = {two: counts.most_common(2) for two, counts in sorted(given.items())}
    return {
        two: first
        for two, [(first, count), *others] in ranked.items()
        if not (others and others[0][1] == count)
    }


def signs(found: "Sequence[Tested]") -> dict[str, dict[str, Any]]:
    return {
        "relation": {pair(each.a, each.b): each.relation for each in found},
        "p": {pair(each.a, each.b): each.p for each in found},
    }


def agreement(found: "Sequence[Tested]", people: Relations) -> dict[str, Any]:
    """Return the share of pairs with people's relation, and the number of those with the opposite one."""
    both = [(each.relation, people[each.a, each.b]) for each in found if (each.a, each.b) in people]
    same = fmean(a == b for a, b in both) if both else None
    return {"agreement": same, "opposite": sum(two in OPPOSITE for two in both)}


def pair(a: str, b: str) -> str:
    return f"{a} : {b}"
