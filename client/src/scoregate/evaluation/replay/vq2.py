"""The answers to VQ²'s questions that j-min/DSG publishes (`vqa_answers_release/*_vq2a.csv`)."""

from argparse import Namespace

from scoregate.evaluation.replay.ratings import answers_by_picture, figures_of
from service.metrics.vq2 import fold


def figures(arguments: Namespace) -> dict[str, float]:
    """
    Return the figures of `figures_of`.

    The published answers are words and not probabilities, so a pair counts 1 for the exact answer "yes",
    and else 0.

    Raises:
        OSError, ValueError: a file cannot be used, or its questions have numbers, which VQ²'s do not.
    """
    answers = answers_by_picture(arguments.answers, "vq2a", "question")
    if any("question_id" in row for rows in answers.values() for row in rows):
        raise ValueError(
            f"{arguments.answers} has a column question_id: these are answers to DSG's questions"
        )
    return figures_of(
        answers,
        arguments.likert,
        lambda _, rows: fold({number: float(row["answer"] == "yes") for number, row in enumerate(rows)}),
    )
