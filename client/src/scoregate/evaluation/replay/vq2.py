"""The answers to VQ²'s questions that j-min/DSG publishes (`vqa_answers_release/*_vq2a.csv`)."""

from argparse import Namespace

from scoregate.evaluation.replay.ratings import answers_by_picture, figures_of
from service.metrics.vq2 import fold


def figures(arguments: Namespace) -> dict[str, float]:
    """
    Return Spearman, Kendall's tau-b, the number of pictures and their mean score.

    The published answers are words and not probabilities, so a pair counts 1 for the exact answer "yes",
    and else 0.
    """
    answers = answers_by_picture(arguments.answers)
    return figures_of(
        answers,
        arguments.likert,
        lambda rows: fold({number: float(row["answer"] == "yes") for number, row in enumerate(rows)}),
    )
