"""
Gecko2K: metrics against people, point by point, side by side and in the generators' order.

Gecko (Wiles et al. 2024, [arXiv 2404.16820](https://arxiv.org/abs/2404.16820)), over all prompts, each of
its two sets, and each skill of Gecko(S). The authors released the prompts; the ratings are yours.

* **`--answers`** has raters' answers, as for [templates](figures.md#templates), or pictures' scores in
  columns `wl`, `likert` and `dsg`. **`--votes`** has votes, as for [sxs](figures.md#sxs).
* **`metrics`**: correlations with each template, point by point. **`sxs`**: the [accuracy](figures.md#sxs)
  of metrics and of templates.
* **`ordering`**: the [relation](figures.md#ordering) of each two generators by means; `majority`, that of
  most templates and the votes; `agreement`, the share of pairs with it; `opposite`, wins taken for losses.
* **`means`**: generators by skill, for templates and metrics.
* **`--reliable 0.5`** uses the reliable prompts only.

DATA: `prompts.csv`: `prompt_id`, `prompt_type`, `dataset_id`. Key of scores: `prompt_id` (or `item`) and
`model`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from scoregate.bench.data import MetricBenchmark, ScoreSettings, Tags, columns, metrics_of, worth
from scoregate.bench.metrics.genai import by_skill
from scoregate.errors import ColumnError, InputError, named
from scoregate.evaluation.agreement import correlation
from scoregate.evaluation.figures.generators import mean_by_image, votes_of
from scoregate.evaluation.figures.raters import COLUMNS, answers_of
from scoregate.evaluation.ordering import OrderedPair, ordering
from scoregate.evaluation.side_by_side import Majorities, choices, majorities, side_by_side
from scoregate.evaluation.side_by_side import SideBySidePair as Compared
from scoregate.evaluation.tables import Table, rows_of
from scoregate.evaluation.templates import scores as template_scores
from scoregate.settings import Setting, share

Tested = OrderedPair | Compared

Scores = Mapping[tuple[str, str], float]  # keys are items and generators
Judges = Mapping[str, Scores]
FigureRows = list[dict[str, Any]]
Relations = dict[tuple[str, str], str]  # two generators have one of >, < and =

ALL = "all"
SXS = "sxs"
MAJORITY = "majority"
OPPOSITE = {(">", "<"), ("<", ">")}

TEMPLATES = ("wl", "likert", "dsg")
DATA_COLUMNS = {*TEMPLATES, "prompt_id", "item", "model", "prompt_type", "dataset_id"}
SYNTHETIC = "Gecko(S)"  # its prompts have skills


def parts(tags: Tags) -> Iterator[tuple[str, set[str]]]:
    """Yield all items that are kept, and those of each tag."""
    yield ALL, {item for item, each in tags.items() if each}
    for tag in sorted({tag for each in tags.values() for tag in each}):
        yield tag, {item for item, each in tags.items() if tag in each}


def within(found: Mapping[Any, Any], items: set[str]) -> dict[Any, Any]:
    """Return the entries about *items*; a key begins with its item."""
    return {place: value for place, value in found.items() if place[0] in items}


def correlations(metrics: Judges, people: Judges, tags: Tags) -> FigureRows:
    """Return a row for each metric and tag, with its correlations with people's scores by template."""
    return [
        {"metric": metric, "tag": tag} | of_templates(within(scores, items), people)
        for metric, scores in metrics.items()
        for tag, items in parts(tags)
        if people
    ]


def of_templates(scores: Scores, people: Judges) -> dict[str, Any]:
    """Return correlations, None if undefined, over the pictures with both scores, by template."""
    row: dict[str, dict[str, Any]] = {"pearson": {}, "spearman": {}, "pictures": {}}
    for template, ratings in people.items():
        both = [place for place in scores if place in ratings]
        row["pearson"][template] = row["spearman"][template] = None
        row["pictures"][template] = len(both)
        with suppress(ColumnError):  # all scores may be the same, for example
            found = correlation([scores[place] for place in both], [ratings[place] for place in both])
            row["pearson"][template], row["spearman"][template] = found.pearson, found.spearman
    return row


def accuracies(judges: Judges, votes: Majorities, tags: Tags) -> FigureRows:
    """Return a row for each judge and tag with a comparison: how often it prefers what raters prefer."""
    rows: FigureRows = []
    for judge, scores in judges.items():
        for tag, items in parts(tags):
            with suppress(ColumnError):  # no comparison with a preference has both scores
                rows.append({"judge": judge, "tag": tag, **asdict(choices(within(votes, items), scores))})
    return rows


def orderings(metrics: Judges, people: Judges, votes: Majorities, tags: Tags, alpha: float) -> FigureRows:
    """
    Return a row for each tag and judge, with the relation of each two generators and its p.

    People's is the relation that most of the templates and the votes give, as in Gecko's section 6.4.
    """
    rows: FigureRows = []
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


def ordered(scores: Scores, alpha: float) -> Sequence[Tested]:
    """Return the test of each two generators that share an item, the better by means."""
    with suppress(ColumnError):
        return tested(scores, alpha)
    found: list[Any] = []
    for two in combinations(sorted({model for _, model in scores}), 2):
        with suppress(ColumnError):  # they share no item, or all their scores are equal
            found += tested({place: score for place, score in scores.items() if place[1] in two}, alpha)
    return found


def tested(scores: Scores, alpha: float) -> Sequence[Tested]:
    """Return the test of each two generators.  Raises `ColumnError` if one of them is not possible."""
    names, models = [item for item, _ in scores], [model for _, model in scores]
    return ordering([*scores.values()], models, names, alpha=alpha, better="means").pairs


def majority(tests: Iterable[Sequence[Tested]]) -> Relations:
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


def signs(found: Sequence[Tested]) -> dict[str, dict[str, Any]]:
    return {
        "relation": {pair(each.a, each.b): each.relation for each in found},
        "p": {pair(each.a, each.b): each.p for each in found},
    }


def agreement(found: Sequence[Tested], people: Relations) -> dict[str, Any]:
    """Return the share of pairs with people's relation, and the number of those with the opposite one."""
    both = [(each.relation, people[each.a, each.b]) for each in found if (each.a, each.b) in people]
    same = fmean(a == b for a, b in both) if both else None
    return {"agreement": same, "opposite": sum(two in OPPOSITE for two in both)}


def pair(a: str, b: str) -> str:
    return f"{a} : {b}"


@dataclass(frozen=True, kw_only=True)
class Gecko2kSettings(ScoreSettings):
    """The settings of Gecko2K."""

    answers: Annotated[
        Path | None,
        Setting(
            "raters' answers, as of `evaluate templates`; or the pictures' scores in columns wl, likert, dsg",
            metavar="FILE",
        ),
    ] = None
    votes: Annotated[Path | None, Setting("side-by-side votes, as of `evaluate sxs`", metavar="FILE")] = None
    reliable: Annotated[
        float | None,
        Setting(
            "only prompts with less disagreement than this share of the largest, by DATA (the paper: 0.5)",
            metavar="SHARE",
            parse=share,
        ),
    ] = None
    alpha: Annotated[float, Setting("significant below it (default 0.001)", metavar="A", parse=share)] = 0.001


def tables(settings: Gecko2kSettings) -> dict[str, Any]:
    """Return point-wise correlation, side-by-side accuracy, order and means, by the prompts' tags."""
    tags = tags_of(settings.data, settings.reliable)
    people = dict(people_of(settings.answers)) if settings.answers else {}
    votes = majorities_of(settings.votes) if settings.votes else {}
    metrics, shown, turned = scored(settings)
    if not (people or votes):
        raise InputError(f"no ratings to compare with: name a file by {named('answers')} or {named('votes')}")
    judges = people | metrics
    asked = {item for scores in judges.values() for item, _ in scores} | {item for item, _, _ in votes}
    if unknown := asked - tags.keys():
        raise InputError(f"{settings.data}: there is no prompt {min(unknown)}")
    found = {
        "metrics": correlations(metrics, people, tags),
        "sxs": accuracies(judges, votes, tags),
        "ordering": orderings(metrics, people, votes, tags, settings.alpha),
        "means": [row for name, each in (people | shown).items() for row in means_of(name, each, tags)],
    }
    for row in (*found["metrics"], *found["sxs"], *found["ordering"]):
        if row.get("metric", row.get("judge")) in turned:
            row["lower_is_better"] = True
    return {"prompts": sum(map(bool, tags.values()))} | {name: rows for name, rows in found.items() if rows}


def tags_of(path: Path, reliable: float | None) -> Tags:
    """Return the set of each prompt, and in Gecko(S) its skill; none if it is not *reliable*."""
    table = rows_of(path)
    kept = table.labels(f"max_disagreement_less_{reliable:g}") if reliable else [1.0] * len(table.records)
    rows = zip(items(table), table.names("prompt_type"), table.names("dataset_id"), kept, strict=True)
    found: dict[str, Sequence[str]] = {}
    for item, kind, source, keep in rows:
        if item in found:
            raise InputError(f"{path}: prompt {item} is there twice")
        skill = [source.partition(":")[0]] if kind == SYNTHETIC else []
        found[item] = [kind, *skill] if keep == 1 else []
    return found


def item_column(table: Table) -> str:
    return "item" if "item" in table.records[0].values else "prompt_id"


def items(table: Table) -> list[str]:
    """Return the prompt of each row."""
    return table.names(item_column(table))


def image_keys(table: Table) -> list[tuple[str, str]]:
    """Return the prompt and the generator of each row."""
    return list(zip(items(table), table.names("model"), strict=True))


def people_of(path: Path) -> Iterator[tuple[str, Scores]]:
    """Yield people's scores by template, from raters' answers or as they are."""
    table = rows_of(path)
    if table.has("template"):
        names = {name: name for name in COLUMNS} | {"item": item_column(table)}
        with columns(path):
            yield from template_scores(answers_of(table, names)).items()
    elif not (found := [*filter(table.has, TEMPLATES)]):
        raise InputError(f"{path}: no column template, and none of {', '.join(TEMPLATES)}")
    else:
        yield from ((name, mean_by_image(image_keys(table), table.numbers(name))) for name in found)


def majorities_of(path: Path) -> Majorities:
    """Return the vote of the majority of raters about each two pictures."""
    table = rows_of(path)
    with columns(path):
        rater = "rater" if table.has("rater") else None
        return majorities(votes_of(table, item=item_column(table), rater=rater)[0])


def scored(settings: Gecko2kSettings) -> tuple[dict[str, Scores], dict[str, Scores], set[str]]:
    """
    Return the scores of each metric, of all files, with higher ones better; and as they stand there.

    The third are the metrics that differ in this.
    """
    places: dict[str, list[tuple[str, str]]] = defaultdict(list)
    higher: dict[str, list[float]] = defaultdict(list)
    stands: dict[str, list[float]] = defaultdict(list)
    turned = set[str]()
    for table, metric in metrics_of(settings, map(rows_of, settings.scores), DATA_COLUMNS):
        places[metric] += image_keys(table)
        higher[metric] += worth(settings, table, metric).tolist()
        turned |= {metric} if table.turned else set()
        stands[metric] += table.numbers(metric).tolist()

    def by_image(values: Mapping[str, list[float]]) -> dict[str, Scores]:
        return {name: mean_by_image(places[name], values[name]) for name in places}

    return by_image(higher), by_image(stands), turned


def means_of(name: str, scores: Scores, tags: Tags) -> list[dict[str, Any]]:
    """Return a row for each tag, with the generators' means."""
    kept = [place for place in scores if tags[place[0]]]
    models, of_rows = [model for _, model in kept], [tags[item] for item, _ in kept]
    return by_skill(name, [scores[place] for place in kept], models, of_rows)


GECKO2K = MetricBenchmark(
    "gecko2k", "prompts.csv: prompt_id, prompt_type, dataset_id", Gecko2kSettings, tables
)
