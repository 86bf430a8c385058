"""
Published answers against people's ratings: those to DSG's and VQ²'s questions that j-min/DSG publishes.

The files are `vqa_answers_release/*_dsg.csv` and `*_vq2a.csv`, and the ratings of TIFA160.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from scoregate.evaluation.agreement import correlation
from scoregate.records import cell_number
from scoregate.text import say
from service.core.text_files import table
from service.metrics.common.answers import Dependencies
from service.metrics.dsg import fold as dsg_fold
from service.metrics.vq2 import fold as vq2_fold
from service.questions.exchange.dsg import parents_of
from service.questions.sets import Question

RatedImage = tuple[str, str]  # the generator and the prompt's item
RaterRows = list[dict[str, str]]

STYLE = "qg_model"  # the style of the questions in released answers
MAX_NAMED_IMAGES = 5  # pictures without answers that are named

NUMBER = re.compile("[1-9][0-9]*")
ITEMS_WITHOUT_QUESTIONS = (
    "tifa160_134",
)  # has no questions in the released files, and counts 0 in the authors' table


def answers_by_image(path: Path, style: str, question: str, *more: str) -> dict[RatedImage, RaterRows]:
    """
    Return the answers to the questions of *style* in a CSV file by picture, in order.

    Args:
        question: the column that identifies a question of a picture, if the file has it.
        more: further columns that the file must have.

    Raises:
        OSError, ValueError: the file cannot be used, has answers to questions of another style, or has two
            answers to one question.
    """
    found: dict[RatedImage, RaterRows] = defaultdict(list)
    for place, image, row in rows_of(path, question, more):
        if row.get(STYLE, style) != style:
            raise ValueError(f"{place}, column {STYLE}: {row[STYLE]!r}, and not {style!r}")
        found[image].append(row)
    return found


def ratings_by_image(path: Path) -> dict[RatedImage, float]:
    """Return the mean rating of each picture.  Raises as `answers_by_image`, also for what is no number."""
    found = defaultdict(list)
    for place, image, row in rows_of(path, "worker_id"):
        try:
            rating = cell_number(row["answer"])
        except ValueError as exc:
            raise ValueError(f"{place}, column answer: {exc}") from exc
        if rating != rating:
            raise ValueError(f"{place}, column answer: {row['answer']!r} is not a number")
        found[image].append(rating)
    return {image: fmean(ratings) for image, ratings in found.items()}


def rows_of(
    path: Path, once: str, more: Collection[str] = ()
) -> Iterator[tuple[str, RatedImage, dict[str, str]]]:
    """
    Yield the rows of a CSV file, each with its place for messages and its picture.

    Raises:
        OSError, ValueError: the file cannot be used, or the column *once*, if it has this, has a value twice
            for one picture.
    """
    seen = set[tuple[RatedImage, str]]()
    for line, row in table(path, ["t2i_model", "item_id", "answer", *more]):
        place, image = f"{path}: line {line}", (row["t2i_model"], row["item_id"])
        if once in row:
            if (image, row[once]) in seen:
                raise ValueError(f"{place}: {once} {row[once]!r} of {shown(image)} is there twice")
            seen.add((image, row[once]))
        yield place, image, row


def figures_of(
    answers: Mapping[RatedImage, RaterRows],
    likert: Path,
    score: Callable[[RatedImage, RaterRows], float],
    unasked: Collection[str] = (),
) -> dict[str, float]:
    """
    Return the correlations of scores with mean ratings over the rated pictures that have answers.

    `missing` counts the rated pictures without answers, which are left out.

    Args:
        likert: CSV of ratings, one row for each.
        score: the score of a picture from its answers.
        unasked: items without questions.  Their pictures count 0, as in the published figures, if the
            generator's other pictures have answers.

    Raises:
        OSError, ValueError: the file cannot be used; no rated picture has answers; all values are equal.
    """
    ratings = ratings_by_image(likert)
    without = [image for image in ratings if image not in answers]
    if len(without) == len(ratings):
        raise ValueError(f"{likert}: no rated picture has answers")
    answering = {generator for generator, _ in answers}
    missing = {pic for pic in without if pic[1] not in unasked or pic[0] not in answering}
    kept = [image for image in ratings if image not in missing]
    scores = [score(image, answers[image]) if image in answers else 0.0 for image in kept]
    found = correlation(scores, [ratings[image] for image in kept])
    if zero := len(without) - len(missing):
        say(f"{zero} pictures of {', '.join(unasked)} have no questions: they count 0")
    if missing:
        named = ", ".join(map(shown, sorted(missing)[:MAX_NAMED_IMAGES])) + ", …" * (
            len(missing) > MAX_NAMED_IMAGES
        )
        say(f"{len(missing)} rated pictures have no answers and are left out: {named}")
    figures = {"spearman": found.spearman, "kendall": found.kendall, "n": found.n, "mean": fmean(scores)}
    return figures | {"missing": len(missing)}


def shown(image: RatedImage) -> str:
    return "/".join(image)


ID, PARENTS = "question_id", "dependency_id"


def dsg(answers: Path, likert: Path, dependencies: Dependencies) -> dict[str, float]:
    """
    Return the figures of `figures_of`; the pictures of `ITEMS_WITHOUT_QUESTIONS` count 0, as in print.

    Raises:
        OSError, ValueError: a file cannot be used; a question is no number, or its parent has no answer.
    """
    found = answers_by_image(answers, "dsg", ID, ID, PARENTS)

    def score_of(image: RatedImage, rows: Sequence[Mapping[str, str]]) -> float:
        try:
            return dsg_score(rows, dependencies)
        except ValueError as exc:
            raise ValueError(f"{answers}: {shown(image)}: {exc}") from exc

    return figures_of(found, likert, score_of, ITEMS_WITHOUT_QUESTIONS)


def dsg_score(rows: Sequence[Mapping[str, str]], dependencies: Dependencies) -> float:
    """
    Return the score of one picture.

    Only the exact answer "yes" is a yes: InstructBLIP answered 22 of 4,605 questions with something else.
    """
    parents = parents_of([row[PARENTS] for row in rows]) or [()] * len(rows)
    questions = [
        Question(question_number(row[ID]), text="", depends_on=ids)
        for row, ids in zip(rows, parents, strict=True)
    ]
    yes = {question.id: row["answer"] == "yes" for question, row in zip(questions, rows, strict=True)}
    for question in questions:
        if unanswered := [id for id in question.depends_on if id not in yes]:
            raise ValueError(f"question {question.id} depends on {unanswered[0]}, which has no answer")
    return dsg_fold(questions, yes, yes, dependencies).value


def question_number(text: str) -> int:
    """Parse a question's number."""
    if not NUMBER.fullmatch(text):
        raise ValueError(f"{ID} {text!r} is not a number")
    return int(text)


def vq2(answers: Path, likert: Path) -> dict[str, float]:
    """
    Return the figures of `figures_of`.

    The published answers are words and not probabilities, so a pair counts 1 for the exact answer "yes",
    and else 0.

    Raises:
        OSError, ValueError: a file cannot be used, or its questions have numbers, which VQ²'s do not.
    """
    found = answers_by_image(answers, "vq2a", "question")
    if any("question_id" in row for rows in found.values() for row in rows):
        raise ValueError(f"{answers} has a column question_id: these are answers to DSG's questions")
    return figures_of(
        found,
        likert,
        lambda _, rows: vq2_fold({number: float(row["answer"] == "yes") for number, row in enumerate(rows)}),
    )
