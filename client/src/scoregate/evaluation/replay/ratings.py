"""People's ratings of pictures, and how well the scores of a metric agree with them."""

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from statistics import fmean

from scoregate.evaluation.agreement import correlation
from scoregate.evaluation.tables import Table
from service.core.text_files import table

Picture = tuple[str, str]  # the generator and the prompt's item
Rows = list[dict[str, str]]

STYLE = "qg_model"  # in released answers: the style of the questions
NAMED = 5  # pictures without answers that are named


def answers_by_picture(path: Path, style: str, question: str, *more: str) -> dict[Picture, Rows]:
    """
    Return the answers to the questions of *style* in a CSV file by picture, in order.

    Args:
        question: the column that identifies a question of a picture, if the file has it.
        more: further columns that the file must have.

    Raises:
        OSError, ValueError: the file cannot be used, has answers to questions of another style, or has two
            answers to one question.
    """
    found: dict[Picture, Rows] = defaultdict(list)
    for place, picture, row in rows_of(path, question, more):
        if row.get(STYLE, style) != style:
            raise ValueError(f"{place}, column {STYLE}: {row[STYLE]!r}, and not {style!r}")
        found[picture].append(row)
    return found


def ratings_by_picture(path: Path) -> dict[Picture, float]:
    """Return the mean rating of each picture.  Raises as `answers_by_picture`, also for what is no number."""
    numbers, found = Table(path, []), defaultdict(list)
    for place, picture, row in rows_of(path, "worker_id"):
        try:
            rating = numbers.number(row["answer"])
        except ValueError as exc:
            raise ValueError(f"{place}, column answer: {exc}") from exc
        if rating != rating:
            raise ValueError(f"{place}, column answer: {row['answer']!r} is not a number")
        found[picture].append(rating)
    return {picture: fmean(ratings) for picture, ratings in found.items()}


def rows_of(
    path: Path, once: str, more: Collection[str] = ()
) -> Iterator[tuple[str, Picture, dict[str, str]]]:
    """
    Yield the rows of a CSV file, each with its place for messages and its picture.

    Raises:
        OSError, ValueError: the file cannot be used, or the column *once*, if it has this, has a value twice
            for one picture.
    """
    seen = set[tuple[Picture, str]]()
    for line, row in table(path, ["t2i_model", "item_id", "answer", *more]):
        place, picture = f"{path}: line {line}", (row["t2i_model"], row["item_id"])
        if once in row:
            if (picture, row[once]) in seen:
                raise ValueError(f"{place}: {once} {row[once]!r} of {shown(picture)} is there twice")
            seen.add((picture, row[once]))
        yield place, picture, row


def figures_of(
    answers: Mapping[Picture, Rows],
    likert: Path,
    score: Callable[[Picture, Rows], float],
    unasked: Collection[str] = (),
) -> dict[str, float]:
    """
    Return the correlations of scores with mean ratings over the rated pictures that have answers.

    `missing` counts the rated pictures without answers, which are left out.

    Args:
        likert: CSV of ratings, one row for each.
        score: the score of a picture from its answers.
        unasked: items without questions.  Their pictures count 0, as in the published figures, if the
            generator's other pictures have answers.

    Raises:
        OSError, ValueError: the file cannot be used; no rated picture has answers; all values are equal.
    """
    ratings = ratings_by_picture(likert)
    without = [picture for picture in ratings if picture not in answers]
    if len(without) == len(ratings):
        raise ValueError(f"{likert}: no rated picture has answers")
    answering = {generator for generator, _ in answers}
    missing = {pic for pic in without if pic[1] not in unasked or pic[0] not in answering}
    kept = [picture for picture in ratings if picture not in missing]
    scores = [score(picture, answers[picture]) if picture in answers else 0.0 for picture in kept]
    found = correlation(scores, [ratings[picture] for picture in kept])
    if zero := len(without) - len(missing):
        print(f"{zero} pictures of {', '.join(unasked)} have no questions: they count 0", file=sys.stderr)
    if missing:
        named = ", ".join(map(shown, sorted(missing)[:NAMED])) + ", …" * (len(missing) > NAMED)
        print(f"{len(missing)} rated pictures have no answers and are left out: {named}", file=sys.stderr)
    figures = {"spearman": found.spearman, "kendall": found.kendall, "n": found.n, "mean": fmean(scores)}
    return figures | {"missing": len(missing)}


def shown(picture: Picture) -> str:
    return "/".join(picture)
