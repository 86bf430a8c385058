"""The answers that j-min/DSG publishes (`vqa_answers_release/*_dsg.csv`), against the ratings of TIFA160."""

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence

from scoregate.evaluation.replay.ratings import Picture, answers_by_picture, figures_of, shown
from service.metrics.common.answers import Dependencies
from service.metrics.dsg import fold
from service.questions.exchange.dsg import parents_of
from service.questions.sets import Question

ID, PARENTS = "question_id", "dependency_id"
NUMBER = re.compile("[1-9][0-9]*")
UNASKED = ("tifa160_134",)  # has no questions in the released files, and counts 0 in the authors' table


def figures(arguments: Namespace) -> dict[str, float]:
    """
    Return the figures of `figures_of`; the pictures of `UNASKED` count 0, as in print.

    Raises:
        OSError, ValueError: a file cannot be used; a question is no number, or its parent has no answer.
    """
    answers = answers_by_picture(arguments.answers, "dsg", ID, ID, PARENTS)

    def score_of(picture: Picture, rows: Sequence[Mapping[str, str]]) -> float:
        try:
            return score(rows, arguments.dependencies)
        except ValueError as exc:
            raise ValueError(f"{arguments.answers}: {shown(picture)}: {exc}") from exc

    return figures_of(answers, arguments.likert, score_of, UNASKED)


def score(rows: Sequence[Mapping[str, str]], dependencies: Dependencies) -> float:
    """
    Return the score of one picture.

    Only the exact answer "yes" is a yes: InstructBLIP answered 22 of 4,605 questions with something else.
    """
    parents = parents_of([row[PARENTS] for row in rows]) or [()] * len(rows)
    questions = [
        Question(number(row[ID]), text="", depends_on=ids) for row, ids in zip(rows, parents, strict=True)
    ]
    yes = {question.id: row["answer"] == "yes" for question, row in zip(questions, rows, strict=True)}
    for question in questions:
        if unanswered := [id for id in question.depends_on if id not in yes]:
            raise ValueError(f"question {question.id} depends on {unanswered[0]}, which has no answer")
    return fold(questions, yes, yes, dependencies).value


def number(text: str) -> int:
    """Parse a question's number."""
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{ID} {text!r} is not a number")
    return int(text)
