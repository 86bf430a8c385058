"""Pictures of several generators: what they have in common, what is missing, and the answer of a pair."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any

from scoregate.data.datasets import Dataset
from scoregate.errors import InputError, NoColumnError, named
from scoregate.evaluation.tables import values
from scoregate.evaluation.versus import GeneratorPair
from scoregate.results import is_number
from scoregate.runs.generators import ScoredGenerator
from scoregate.runs.plan import Line
from scoregate.text import number

IMAGE = "image"  # the column that stands for a picture's file name without its suffix
NO_IMAGE, NOT_SCORED = "no_picture", "not_scored"
MAX_NAMED_SCORES = 5  # missing scores that are named in a line


@dataclass(frozen=True)
class GeneratorImage:
    """
    A picture of a generator, or a row that should have one.

    Attributes:
        item: what generators share; None where it is not known.
        errors: the code of each metric without a score.
        questions: the score of each, by metric and text.
    """

    generator: str
    item: str | None
    image: str | None
    prompt: str | None
    sha256: str | None
    scores: Mapping[str, float]
    errors: Mapping[str, str]
    tags: Sequence[str] = ()
    questions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def images_of(
    generators: Sequence[ScoredGenerator],
    metrics: Sequence[str],
    *,
    item: str | None = None,
    by: str | None = None,
    questions: bool = False,
) -> list[GeneratorImage]:
    """
    Return the picture of each line of results.

    Args:
        item: the column of what generators share; `IMAGE`: the file's name; by default the prompt.
        by: the column of tags.
        questions: whether those in the details are returned.

    Raises:
        InputError: no line has the column of tags or items.
    """
    found: list[GeneratorImage] = []
    offered: dict[str, None] = {}
    for generator in generators:
        for line in generator.lines():
            columns = line.get("columns", {})
            offered |= dict.fromkeys(columns)
            found.append(
                GeneratorImage(
                    generator.name,
                    item_of(line, item),
                    line["image"],
                    line["prompt"],
                    line["sha256"],
                    {metric: line["scores"][metric] for metric in metrics if metric in line["scores"]},
                    {
                        metric: line["errors"].get(metric, {}).get("code", NOT_SCORED)
                        for metric in metrics
                        if metric not in line["scores"]
                    },
                    values(columns.get(by)) if by else (),
                    questions_of(line, metrics) if questions else {},
                )
            )
    for name in filter(None, (by, item)):
        if name not in offered and name != IMAGE:
            raise NoColumnError("the results", name, offered)
    return found


def item_of(line: Line, column: str | None) -> str | None:
    """Return what a line's picture has in common with those of other generators: by default its prompt."""
    if column and column != IMAGE:
        return next(iter(values(line.get("columns", {}).get(column))), None)
    if column is None and line["prompt"]:
        return str(line["prompt"])
    return str(PurePosixPath(line["image"]).with_suffix("")) if line["image"] else None


def questions_of(line: Line, metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the scores of the questions in a line's details, by metric and text."""
    found: dict[str, dict[str, float]] = {}
    for metric in metrics:
        details = line.get("details", {}).get(metric)
        asked = details.get("questions") if isinstance(details, Mapping) else None
        for each in asked if isinstance(asked, list) else ():
            if isinstance(each, Mapping) and is_number(each.get("score")):
                found.setdefault(metric, {})[str(each.get("text"))] = float(each["score"])
    return found


def with_tags(images: Sequence[GeneratorImage]) -> list[GeneratorImage]:
    """Return pictures, each with all tags of its item: a generator's table may have no column of them."""
    of: dict[str | None, dict[str, None]] = {}
    for each in images:
        of.setdefault(each.item, {}).update(dict.fromkeys(each.tags))
    return [replace(each, tags=[*of[each.item]]) if each.item else each for each in images]


def check_folders(datasets: Mapping[str, Dataset], column: str | None) -> None:
    """Raise `InputError` if two folders of pictures have no item in common, before any picture is scored."""
    folders = {name: each for name, each in datasets.items() if not (each.shards or each.table)}
    check_shared(
        {
            name: {
                item_of({"prompt": row.prompt, "image": row.image, "columns": row.columns}, column)
                for row in folder
            }
            for name, folder in folders.items()
        }
    )


def check_shared(items: Mapping[str, set[str | None]]) -> None:
    """Raise `InputError` if two generators have no item in common, as pictures of other prompts have none."""
    for (first, own), (name, others) in combinations(items.items(), 2):
        if not (own & others) - {None}:
            raise InputError(
                f"{first} and {name} have no prompt in common: give both {named('prompts', 'FILE')},"
                f" or match file names by {named('item', 'image')}"
            )


def missing_scores(
    images: Sequence[GeneratorImage], names: Sequence[str], metrics: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield what is missing: each picture without a score, and each item without a picture of a generator."""
    there: dict[str, set[str]] = {name: set() for name in names}
    prompts: dict[str, str | None] = {}
    for each in images:
        if each.item:
            there[each.generator].add(each.item)
            prompts.setdefault(each.item, each.prompt)
        for metric, code in each.errors.items():
            yield missing_score(each.generator, metric, each.prompt, each.image, code)
    for name in names:
        for item in prompts:
            if item not in there[name]:
                yield missing_score(name, None, prompts[item] or item, None, NO_IMAGE)


def missing_score(
    generator: str, metric: str | None, prompt: str | None, image: str | None, code: str
) -> dict[str, Any]:
    return {"generator": generator, "metric": metric, "prompt": prompt, "image": image, "code": code}


def missing_lines(missing: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each generator and reason: how many scores are missing, and the first ones."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in missing:
        key = each["generator"], each["metric"] or "", each["code"]
        found.setdefault(key, []).append(str(each["prompt"] or each["image"]))
    return [
        " ".join(filter(None, [f"{name}:", f"{len(prompts)}", code, metric and f"of {metric}"]))
        + f" ({', '.join(map(repr, prompts[:MAX_NAMED_SCORES]))}{', …' * (len(prompts) > MAX_NAMED_SCORES)})"
        for (name, metric, code), prompts in found.items()
    ]


def verdict(pair: GeneratorPair) -> str:
    """Return a pair's answer in one sentence."""
    if pair.difference is None or pair.p_holm is None:
        return f"{pair.metric}: {pair.a} and {pair.b} have no prompt with both scores"
    ends = f", 95 % {number(pair.interval[0])} to {number(pair.interval[1])}" if pair.interval else ""
    size = f"difference {number(pair.difference)}{ends}; p = {pair.p_holm:.2g}"
    if pair.better:
        other, wins = (pair.b, pair.wins) if pair.better == pair.a else (pair.a, pair.losses)
        of = f"{wins} of {pair.prompts} prompts"
        return f"{pair.metric}: {pair.better} is better than {other}, on {of} ({size})"
    more = pair.needed is not None and pair.needed > pair.prompts
    needed = f"; {pair.needed:,} prompts would show it with a power of 80 %" if more else ""
    return f"{pair.metric}: {pair.a} and {pair.b} do not differ significantly ({size}{needed})"
