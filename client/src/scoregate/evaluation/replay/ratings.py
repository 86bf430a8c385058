"""People's ratings of pictures, and how well the scores of a metric agree with them."""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean

from scoregate.evaluation.correlation import correlation
from service.core.text_files import table

Picture = tuple[str, str]  # the generator and the prompt's item
Rows = list[dict[str, str]]


def answers_by_picture(path: Path, *more: str) -> dict[Picture, Rows]:
    """Return the rows of a CSV file by picture, in order; *more* are further columns that it must have."""
    rows = defaultdict(list)
    for _, row in table(path, ["t2i_model", "item_id", "answer", *more]):
        rows[row["t2i_model"], row["item_id"]].append(row)
    return rows


def figures_of(
    answers: Mapping[Picture, Rows], likert: Path, score: Callable[[Rows], float]
) -> dict[str, float]:
    """
    Return the correlations of scores with mean ratings over all rated pictures.

    A rated picture without answers counts 0.

    Args:
        likert: CSV of ratings, one row for each.
        score: the score of a picture from its answers.

    Raises:
        OSError, ValueError: the file cannot be used; no rated picture has answers; all values are equal.
    """
    ratings = {
        picture: fmean(float(row["answer"]) for row in rows)
        for picture, rows in answers_by_picture(likert).items()
    }
    if missing := len(ratings.keys() - answers.keys()):
        if missing == len(ratings):
            raise ValueError(f"{likert}: no rated picture has answers")
        print(f"{missing} rated pictures have no answers: they count 0, as they do in print", file=sys.stderr)
    scores = [score(answers[picture]) if picture in answers else 0.0 for picture in ratings]
    found = correlation(scores, list(ratings.values()))
    return {"spearman": found.spearman, "kendall": found.kendall, "n": found.n, "mean": fmean(scores)}
