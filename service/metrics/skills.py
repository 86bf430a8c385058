"""
Skill-aligned questions (Eldesokey et al. 2026, "Skill-Aligned Annotation").

One call of the question LLM lists the skills that a generator of pictures needs for the prompt, and writes
yes/no questions for each: `entities`, `attributes`, `relative_comparison`, `action`, `spatial_arrangement`,
`environment_scene`, `style`, `lighting`, `weather`, `view`, `text_rendering`, `mood_feeling`,
`named_entities`, `language_complexity`, `time`, `camera`.

The `vqa` model answers yes, no or unsure, the likeliest of the three. Unsure questions do not count:

    score(skill) = (1/n) Σ yes(q)
    score        = (1/skills) Σ score(skill)

**Text.** A question of `text_rendering` counts max(0, right words - wrong gaps) / words of its phrase. A
gap before, between or after its words is wrong if it has words that are in no other text of the prompt.
Case, punctuation and typography do not matter. The `vqa` model answers questions about a text's style or
position, and without an OCR model all, with a warning.

Unlike here, the paper

* has all questions in one call, in which a VLM labels each word and gap of a text (here OCR, or with `text:
  "vlm"` the `vqa` model);
* has the skills artifacts and aesthetic quality (`artifact` and `judge` here);
* compares styles, landmarks and named entities with retrieved pictures (here yes/no questions, or `judge`
  with references).

The instructions to the LLM are our own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from models.images.image import Image
from service.core.errors import Unanswered
from service.core.fields import Template
from service.metrics.common.answers import Dependencies, answered, moot
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.question_sets import (
    GIVEN_SETS,
    QuestionDetail,
    SetDetails,
    all_details,
    cut,
    questions_for,
    vqa_demand,
    yes_expected,
)
from service.metrics.common.texts import TextRead, texts_labelled, texts_read, words_of
from service.observability.notes import Code, Note
from service.questions.request_sets import YesNoSet
from service.questions.sets import Question, QuestionSet
from service.questions.style import Style
from service.questions.styles.skills import ONE_QUESTION, STYLE

ANSWERS = ("Yes", "No", "Unsure")
TEXT, NOT_READ = "text_rendering", ("style", "position")  # properties of a text that OCR does not read
UNREAD = Note(Code.NO_OCR_MODEL, "no OCR model is configured: the VQA model judged the text in the image")

MeanOver = Literal["questions", "skills"]
Reader = Literal["ocr", "vlm"]


class SkillsOptions(MetricOptions):
    """
    Options of `skills`.

    Attributes:
        mean: `"questions"`: The mean over all questions. The default is over skills, as in the paper.
        dependencies: `"none"` (default) as in the released code; `"direct"` or `"transitive"` as for `dsg`:
            the children of a "no" count 0, even if they are unsure.
        singular: `"one_question"`: "a dog" gets only the question "Is there exactly one dog?" By default it
            also gets "Is there a dog?", on which the others depend.
        question_set: each `kind` begins with the skill: `attributes/color/property`.
        question: the template of each question.
        text: who reads a text in the picture: `"ocr"`, the OCR model, or `"vlm"`, the `vqa` model.
    """

    mean: MeanOver = "skills"
    dependencies: Dependencies = "none"
    text: Reader = "ocr"
    singular: Literal["two_questions", "one_question"] = "two_questions"
    question: Template = "{} Please answer yes, no or unsure."
    question_set: YesNoSet | None = None

    def overruled(self) -> dict[str, str]:
        """Return the options without effect: a given set is not written."""
        return super().overruled() | ({"singular": "question_set"} if self.question_set else {})


class SkillsAsked(QuestionDetail):
    """
    One question with its answer.

    Attributes:
        answer: the likeliest of the three; "unsure" is left out of the mean.
        probabilities: of the three among themselves; empty if text was read.
        reading: of the text in question, by an OCR model, or by the VQA model's labels.
        zeroed_by: ids of the parents that made it count 0.
    """

    skill: str
    answer: str
    probabilities: Mapping[str, float]
    reading: TextRead | None
    zeroed_by: list[int]


class SkillsDetails(SetDetails):
    """
    Details of `skills`: its question set and the answers.

    Attributes:
        skills: the mean of each skill; null if all its answers are "unsure".
        unsure_rate: the share of the questions that were answered "unsure".
    """

    skills: dict[str, float | None]
    unsure_rate: float
    questions: list[SkillsAsked]


@dataclass(frozen=True, slots=True)
class SkillAnswer:
    """The answer of a model to one question, and its score; None for "unsure"."""

    said: str
    counts: float | None
    probabilities: Mapping[str, float]
    reading: TextRead | None = None
    truncated: bool = False


async def skills(item: Item, models: ModelCalls, options: SkillsOptions) -> Score:
    """
    Return the mean of the skills' scores: each the mean of [yes], without answers "unsure".

    The paper's tables do so, over many images.  With `mean: "questions"` all questions have the same
    weight.

    The paper's annotators cannot answer the children of a "no".  The released code has no such rule, so it
    is off unless `dependencies` is set.  Each question is a call of its own; the paper's model answers all of
    them in one.  Styles and named entities are yes-no questions, too; the paper compares them with images
    from a search.

    Text is read by an OCR model if one is configured, and scored by its words (`text_accuracy`).  With
    `text: "vlm"` the VQA model labels each word and each gap, as in the paper.
    """
    question_set, found = await questions_for(item, models, options.question_set)
    questions = yes_expected(question_set).questions
    texts = {q.id: q.phrase for q in questions if is_text(q)}
    read = await readings(item.image, models, texts, options.text)
    asked = [question for question in questions if question.id not in read]
    answers = await opinions(item.image, models, asked, options.question)
    answers |= {id: judged(text) for id, text in read.items()}
    zeroed = moot(
        questions, {id: answer.said != "no" for id, answer in answers.items()}, options.dependencies
    )
    scores = {q.id: 0.0 if q.id in zeroed else answers[q.id].counts for q in questions}
    shown = details(question_set, answers, scores, zeroed)
    said = cut(answers.values())
    if texts and not read:
        said += (UNREAD,)
    return Score(fold(questions, scores, options.mean), shown, found, said)


async def readings(
    image: Image, models: ModelCalls, texts: Mapping[int, str], reader: Reader
) -> dict[int, TextRead]:
    """Return the accuracy of *texts*; empty without texts, or without the OCR model that should read."""
    if reader == "vlm":
        return await texts_labelled(image, models, texts)
    if not texts or not models.has("ocr"):
        return {}
    return await texts_read(image, models, {id: words_of(text) for id, text in texts.items()})


def fold(questions: Sequence[Question], scores: Mapping[int, float | None], mean: MeanOver) -> float:
    """Return the mean of all scores, or of the skills' means.  Raises `Unanswered` if there are none."""
    sure = [score for score in scores.values() if score is not None]
    if not sure:
        raise Unanswered(f'all {len(questions)} questions are answered "unsure"')
    if mean == "questions":
        return fmean(sure)
    return fmean(score for score in by_skill(questions, scores).values() if score is not None)


def by_skill(questions: Sequence[Question], scores: Mapping[int, float | None]) -> dict[str, float | None]:
    """Return the mean of each skill; None if all its questions are answered "unsure"."""
    found: dict[str, list[float]] = {}
    for question in questions:
        score = scores[question.id]
        found.setdefault(skill(question), []).extend([] if score is None else [score])
    return {name: fmean(counts) if counts else None for name, counts in found.items()}


def skill(question: Question) -> str:
    """Return the first part of its kind; "other" in a set without kinds."""
    return question.kind.partition("/")[0] or "other"


def is_text(question: Question) -> bool:
    """Return True if it is about a text that can be read, and names the text."""
    subskill = question.kind.partition("/")[2].partition("/")[0]
    return skill(question) == TEXT and subskill not in NOT_READ and bool(words_of(question.phrase))


async def opinions(
    image: Image, models: ModelCalls, questions: Sequence[Question], template: str
) -> dict[int, SkillAnswer]:
    """Return the VQA model's answers: the likeliest of "yes", "no" and "unsure"."""
    asked = [replace(question, choices=ANSWERS) for question in questions]
    said = await answered(models.vqa, image, asked, template, "sum", cased=True)
    counts = {"Yes": 1.0, "No": 0.0, "Unsure": None}
    return {
        one.question.id: SkillAnswer(
            one.answer.lower(), counts[one.answer], one.probabilities, truncated=one.truncated
        )
        for one in said
    }


def judged(text: TextRead) -> SkillAnswer:
    """Return "yes" if all of the text is right; the score is the share of right words."""
    return SkillAnswer("yes" if text["accuracy"] == 1 else "no", text["accuracy"], {}, text)


def details(
    question_set: QuestionSet,
    answers: Mapping[int, SkillAnswer],
    scores: Mapping[int, float | None],
    zeroed: Mapping[int, list[int]],
) -> dict[str, Any]:
    """Return the details: the answers with their scores."""
    questions = question_set.questions
    shown = {
        question.id: {
            "skill": skill(question),
            "answer": answers[question.id].said,
            "probabilities": {k.lower(): p for k, p in answers[question.id].probabilities.items()},
            "reading": answers[question.id].reading,
            "zeroed_by": zeroed.get(question.id, []),
        }
        for question in questions
    }
    of_set = {
        "skills": by_skill(questions, scores),
        "unsure_rate": fmean(answers[question.id].said == "unsure" for question in questions),
    }
    return all_details(question_set, scores, shown) | of_set


def style_of(options: SkillsOptions) -> Style:
    """Return the style with two questions about a singular object, or with one as in the paper."""
    return STYLE if options.singular == "two_questions" else ONE_QUESTION


metric = Metric(
    "skills",
    skills,
    options=SkillsOptions,
    details=SkillsDetails,
    roles=("vqa",),
    demand_of=vqa_demand,
    may_use=("questions", "ocr"),
    range=(0, 1),
    formula="mean over the skills of the mean of [yes], or of the share of right words, without unsure",
    paper="Eldesokey et al. 2026, arXiv 2605.13223",
    without={
        "questions": GIVEN_SETS,
        "ocr": "text as the VQA model sees it",
    },
    style=style_of,
)
