"""The sample of an evaluation that Yushi-Hu/tifa publishes (`sample/sample_evaluation_result.json`)."""

from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from pydantic import BaseModel, ConfigDict

from scoregate.evaluation.replay.faults import parsed
from service.core.text_files import opened
from service.metrics.tifa import fold
from service.questions.sets import Question


class Answer(BaseModel):
    """A question with its answer; other fields are kept."""

    model_config = ConfigDict(extra="allow", strict=True)

    answer: str
    choices: list[str]
    element_type: str
    multiple_choice_vqa: str


class Evaluation(BaseModel):
    """The answers by picture, then by question; the file's figures are not read."""

    question_details: dict[str, dict[str, Answer]]


def figures(arguments: Namespace) -> dict[str, Any]:
    """
    Return the whole result, computed from its questions and answers.

    The average and the sample standard deviation are over the pictures, the accuracies over the questions
    of a type.
    """
    pictures = evaluation(arguments.answers).question_details
    scores, details = {}, {}
    by_type = defaultdict(list)
    for picture, entries in pictures.items():
        questions = [
            Question(number, text, one.element_type, expected=one.answer, choices=tuple(one.choices))
            for number, (text, one) in enumerate(entries.items())
        ]
        answers = {number: one.multiple_choice_vqa for number, one in enumerate(entries.values())}
        scores[picture], counts = fold(questions, answers)
        for question in questions:
            by_type[question.kind].append(counts[question.id])
        details[picture] = {
            text: {**one.model_dump(), "scores": counts[number]}
            for number, (text, one) in enumerate(entries.items())
        }
    return {
        "tifa_average": fmean(scores.values()),
        "tifa_stdev": stdev(scores.values()),
        "accuracy_by_type": {kind: fmean(counts) for kind, counts in by_type.items()},
        "question_details": details,
        "caption_scores": scores,
    }


def evaluation(path: Path) -> Evaluation:
    """Read the file.  Raises `ValueError` for another shape, a key twice, or fewer than two pictures."""
    with opened(path) as file:
        content = file.read()
    found = parsed(Evaluation, content, str(path))
    if len(found.question_details) < 2 or not all(found.question_details.values()):
        raise ValueError(f"{path}: there must be questions about two pictures or more")
    return found
