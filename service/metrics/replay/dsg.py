"""The answers that j-min/DSG publishes (`vqa_answers_release/*_dsg.csv`), against the ratings of TIFA160."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import get_args

from service.metrics.common.dependencies import Dependencies
from service.metrics.dsg import fold
from service.metrics.replay.contract import Replay
from service.metrics.replay.ratings import add_files, agreement, answers_by_picture, rated
from service.questions.exchange.dsg import parents_of
from service.questions.sets import Question

ID, PARENTS = "question_id", "dependency_id"


def add_arguments(parser: ArgumentParser) -> None:
    """The files, and the rule for children of a "no"."""
    add_files(parser)
    parser.add_argument("--dependencies", choices=get_args(Dependencies), default="direct")


def numbers(arguments: Namespace) -> Mapping[str, float]:
    """
    Spearman, Kendall's tau-b, the number of pictures and their mean score.

    A picture that was rated and has no answers counts 0 and stays, as in the authors' table
    (item tifa160_134).
    """
    answers = answers_by_picture(arguments.answers, ID, PARENTS)
    ratings = rated(answers, arguments.likert)
    scores = {
        picture: score(rows, arguments.dependencies)
        for picture, rows in answers.items()
        if picture in ratings
    }
    return agreement(scores, ratings)


def score(rows: Sequence[Mapping[str, str]], dependencies: Dependencies) -> float:
    """
    The score of one picture.

    Only the exact answer "yes" is a yes: InstructBLIP answered 22 of 4,605 questions with something else.
    """
    parents = parents_of([row[PARENTS] for row in rows]) or [()] * len(rows)
    questions = [
        Question(int(row[ID]), text="", depends_on=ids) for row, ids in zip(rows, parents, strict=True)
    ]
    yes = {int(row[ID]): row["answer"] == "yes" for row in rows}
    return fold(questions, yes, yes, dependencies).value


replay = Replay("DSG's answers against people's ratings", add_arguments, numbers)
