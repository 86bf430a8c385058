"""The answers that j-min/DSG publishes (`vqa_answers_release/*_dsg.csv`), against the ratings of TIFA160."""

from argparse import Namespace
from collections.abc import Mapping, Sequence

from scoregate.evaluation.replay.ratings import answers_by_picture, figures_of
from service.metrics.common.dependencies import Dependencies
from service.metrics.dsg import fold
from service.questions.exchange.dsg import parents_of
from service.questions.sets import Question

ID, PARENTS = "question_id", "dependency_id"


def figures(arguments: Namespace) -> dict[str, float]:
    """
    Return Spearman, Kendall's tau-b, the number of pictures and their mean score.

    A rated picture without answers counts 0, as in the authors' table (item tifa160_134).
    """
    answers = answers_by_picture(arguments.answers, ID, PARENTS)
    return figures_of(answers, arguments.likert, lambda rows: score(rows, arguments.dependencies))


def score(rows: Sequence[Mapping[str, str]], dependencies: Dependencies) -> float:
    """
    Return the score of one picture.

    Only the exact answer "yes" is a yes: InstructBLIP answered 22 of 4,605 questions with something else.
    """
    parents = parents_of([row[PARENTS] for row in rows]) or [()] * len(rows)
    questions = [
        Question(int(row[ID]), text="", depends_on=ids) for row, ids in zip(rows, parents, strict=True)
    ]
    yes = {int(row[ID]): row["answer"] == "yes" for row in rows}
    return fold(questions, yes, yes, dependencies).value
