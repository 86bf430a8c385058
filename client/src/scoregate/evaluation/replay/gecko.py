"""Gecko's questions and verdicts, as Google's notebook `evaluate_images_with_gecko.ipynb` has them."""

import re
from argparse import Namespace
from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from scoregate.evaluation.replay.faults import parsed
from service.core.text_files import MAX_LINE, lines

BLOCK = re.compile(r"Question:(.*?)Verdict:([^\n]*)", re.DOTALL)


class Pair(BaseModel):
    """A question of the rubric, and its expected answer."""

    model_config = ConfigDict(extra="ignore")

    question: str
    answer: str = Field(min_length=1)  # an empty one is in every verdict
    question_type: str = ""


class Picture(BaseModel):
    """The rubric of a prompt and the verdicts on one picture: by question, or the validator's text."""

    model_config = ConfigDict(extra="ignore")

    qas: list[Pair] = Field(min_length=1)
    rubric_results: dict[str, str] | str

    def verdicts(self) -> Mapping[str, str]:
        """Return the verdicts by question, in lower case.  Raises `ValueError` if a question has two."""
        given, found = self.rubric_results, dict[str, str]()
        for text, answer in BLOCK.findall(given) if isinstance(given, str) else given.items():
            question, verdict = text.strip().lower(), answer.strip().lower()
            if found.setdefault(question, verdict) != verdict:
                raise ValueError(f"{question!r} has two verdicts: {found[question]} and {verdict}")
        return found


def figures(arguments: Namespace) -> dict[str, Any]:
    """
    Return the mean score of the pictures, each picture's, and the share of right answers by type.

    A verdict is right if it contains the expected answer.  A question without a verdict counts 0, as there;
    `missing` counts them.  A picture without any verdict is an error.

    Raises:
        OSError, ValueError: the file cannot be used; the message has line and field.
    """
    scores, missing = [], 0
    by_type = defaultdict(list)
    for number, line in lines(arguments.answers):
        place = f"{arguments.answers}: line {number}"
        picture = read(line, place)
        found = answers(picture, place)
        missing += found.count(None)
        right = [
            float(verdict is not None and pair.answer.lower() in verdict)
            for pair, verdict in zip(picture.qas, found, strict=True)
        ]
        scores.append(fmean(right))
        for pair, count in zip(picture.qas, right, strict=True):
            by_type[pair.question_type].append(count)
    if not scores:
        raise ValueError(f"{arguments.answers}: there is no picture")
    accuracy = {kind: fmean(counts) for kind, counts in by_type.items()}
    return {
        "mean": fmean(scores),
        "n": len(scores),
        "missing": missing,
        "accuracy_by_type": accuracy,
        "scores": scores,
    }


def answers(picture: Picture, place: str) -> list[str | None]:
    """Return the verdict on each question of the rubric.  Raises `ValueError` if there is none at all."""
    try:
        verdicts = picture.verdicts()
    except ValueError as exc:
        raise ValueError(f"{place}: rubric_results: {exc}") from exc
    found = [verdicts.get(pair.question.strip().lower()) for pair in picture.qas]
    if not any(verdict is not None for verdict in found):
        raise ValueError(f"{place}: rubric_results: no question of the rubric has a verdict")
    return found


def read(line: bytes, place: str) -> Picture:
    if len(line) > MAX_LINE:
        raise ValueError(f"{place} has more than {MAX_LINE} bytes")
    return parsed(Picture, line, place)
