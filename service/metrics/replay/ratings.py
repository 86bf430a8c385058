"""What people said of pictures, and how well the scores of a metric agree with it."""

import sys
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

from service.core.text_files import table
from service.metrics.replay.correlation import kendall, spearman

Picture = tuple[str, str]  # the generator and the prompt's item


def add_files(parser: ArgumentParser) -> None:
    """The arguments that all replays against ratings share."""
    parser.add_argument("--answers", type=Path, required=True, help="CSV of a VQA model's answers")
    parser.add_argument("--likert", type=Path, required=True, help="CSV of people's ratings")


def answers_by_picture(path: Path, *more: str) -> dict[Picture, list[dict[str, str]]]:
    """The rows of a file of answers, in order; *more* are columns that it needs beside the usual ones."""
    rows = defaultdict(list)
    for _, row in table(path, ["t2i_model", "item_id", "answer", *more]):
        rows[row["t2i_model"], row["item_id"]].append(row)
    return rows


def mean_ratings(path: Path) -> dict[Picture, float]:
    """The mean rating of each picture that was rated."""
    ratings = defaultdict(list)
    for _, row in table(path, ["t2i_model", "item_id", "answer"]):
        ratings[row["t2i_model"], row["item_id"]].append(float(row["answer"]))
    return {picture: fmean(given) for picture, given in ratings.items()}


def rated(pictures: Iterable[Picture], likert: Path) -> dict[Picture, float]:
    """Mean ratings, of which some at least are about *pictures*.  Raises `ValueError`."""
    ratings = mean_ratings(likert)
    if missing := len(ratings.keys() - set(pictures)):
        if missing == len(ratings):
            raise ValueError(f"{likert}: no picture that was rated there was asked about")
        print(f"{missing} rated pictures have no answers: they count 0, as they do in print", file=sys.stderr)
    return ratings


def agreement(scores: Mapping[Picture, float], ratings: Mapping[Picture, float]) -> dict[str, float]:
    """The correlations over all rated pictures in one pool; one without a score counts 0."""
    ours = [scores.get(picture, 0.0) for picture in ratings]
    theirs = list(ratings.values())
    return {
        "spearman": spearman(ours, theirs),
        "kendall": kendall(ours, theirs),
        "n": len(ours),
        "mean": fmean(ours),
    }
