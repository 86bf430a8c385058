"""Shared parts of metrics with question sets: the set of an item, its demand, and its details."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from models.core.contract import CHOICE_QUESTION
from service.core.errors import Invalid
from service.metrics.common.contract import Item
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.texts import Word, words
from service.observability.notes import Code, Note
from service.questions.request_sets import GivenQuestion
from service.questions.sets import QuestionSet
from service.serving.admission import Demand
from service.serving.context import CacheStatus

USUAL_QUESTIONS = 8  # usual number of questions of a set
QUESTION_CUT_NOTE = Note(Code.QUESTION_TRUNCATED, "a question was cut at the model's length")
GIVEN_SETS = "question sets imported, pinned or sent along"  # these need no question LLM

IdOrQuestions = str | Sequence[GivenQuestion] | None


class QuestionDetail(TypedDict):
    """
    One question with its score.

    Attributes:
        score: of the question in the metric; null if it was left out.
    """

    id: int
    text: str
    kind: str
    depends_on: Sequence[int]
    expected: str
    score: float | None


class SetDetails(TypedDict):
    """
    Details about a question set, common to all metrics that use one.

    Attributes:
        question_set: the set's id.
        provenance: who wrote it.
        words: of the prompt in order, each with the mean score of the questions that cover it.
        uncovered: words that no question covers.
    """

    question_set: str
    provenance: Mapping[str, str]
    words: list[Word]
    uncovered: list[str]


async def questions_for(
    item: Item, models: ModelCalls, given: IdOrQuestions
) -> tuple[QuestionSet, CacheStatus | None]:
    """
    Return the pinned set, the set of the request, or the prompt's own set in the style of the options.

    Raises:
        Invalid: the pinned set was written for another prompt, or in another style.
        UnknownQuestionSet: there is no set with that id.
        ScoregateError: a subclass of it, if a set has to be written and cannot be.
    """
    sets = models.questions
    style = sets.style
    if style is None:
        raise TypeError("the metric declares no style")
    if given is None:
        return await sets.of(item.prompt, style)
    if not isinstance(given, str):
        questions = tuple(question.question() for question in given)
        return QuestionSet(item.prompt, style.name, questions, {"source": "request"}), None
    pinned = await sets.pinned(given)
    if pinned.style != style.name:
        raise Invalid(f"question_set: that set is of the style {pinned.style}, and not {style.name}")
    if pinned.prompt != item.prompt:
        raise Invalid(
            f'question_set: that set was written for the prompt "{pinned.prompt}", and this prompt is'
            f' "{item.prompt}"; an item may name its own set'
        )
    return pinned, "hit"


def yes_expected(asked: QuestionSet) -> QuestionSet:
    """Return *asked*.  Raises `Invalid` if a question expects something other than "yes"."""
    for question in asked.questions:
        if question.expected != "yes":
            raise Invalid(f'question_set: question {question.id} must expect "yes", as all of this style')
    return asked


def vqa_demand(prompt: str, options: Any) -> dict[str, Demand]:
    """
    Return a call of the VQA model for each question of the request's set, or for a typical set.

    Args:
        options: with `question_set`, and with `question` as the template; None means that of questions
            with choices.
    """
    given, template = options.question_set, options.question or CHOICE_QUESTION
    texts = [""] * USUAL_QUESTIONS if given is None or isinstance(given, str) else [q.text for q in given]
    return {"vqa": Demand(len(texts), sum(map(len, texts)) + len(texts) * len(template))}


def all_details(
    asked: QuestionSet, scores: Mapping[int, float | None], answers: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    """
    Return the details of a set and its questions, with the fields `answers[q.id]` of each question q.

    A question that was left out of the metric has no score (None), and covers no word.
    """
    covered = [(q.phrase or q.text, scores[q.id]) for q in asked.questions]
    by_word = words(asked.prompt, [(text, score) for text, score in covered if score is not None])
    return {
        "question_set": asked.id,
        "provenance": asked.provenance,
        "words": by_word,
        "uncovered": [word["word"] for word in by_word if word["score"] is None],
        "questions": [
            {
                "id": q.id,
                "text": q.text,
                "kind": q.kind,
                "depends_on": q.depends_on,
                "expected": q.expected,
                "score": scores[q.id],
                **answers[q.id],
            }
            for q in asked.questions
        ],
    }


def cut(answers: Iterable[Any]) -> tuple[Note, ...]:
    """Return the warning that a question was cut, if one of *answers* is truncated."""
    return (QUESTION_CUT_NOTE,) if any(answer.truncated for answer in answers) else ()
