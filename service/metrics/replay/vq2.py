"""The answers to VQ²'s questions that j-min/DSG publishes (`vqa_answers_release/*_vq2a.csv`)."""

from argparse import Namespace
from collections.abc import Mapping

from service.metrics.replay.contract import Replay
from service.metrics.replay.ratings import add_files, agreement, answers_by_picture, rated
from service.metrics.vq2 import fold


def numbers(arguments: Namespace) -> Mapping[str, float]:
    """
    Spearman, Kendall's tau-b, the number of pictures and their mean score.

    Published are words and not probabilities, so a pair counts 1 for the exact answer "yes", and else 0.
    """
    answers = answers_by_picture(arguments.answers)
    ratings = rated(answers, arguments.likert)
    scores = {
        picture: fold({number: float(row["answer"] == "yes") for number, row in enumerate(rows)})
        for picture, rows in answers.items()
        if picture in ratings
    }
    return agreement(scores, ratings)


replay = Replay("VQ²'s answers against people's ratings", add_files, numbers)
