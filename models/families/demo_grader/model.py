"""
A grader of the demo world: grades and preferences from the yes or no of a CLIP-FlanT5.

The text in double quotes in a question is what the image should show, and p is the probability of yes to the
question of VQAScore about it.  A scale of n grades is answered by the binomial distribution of n - 1 trials
with p, whose mean is the share p of the way from the worst grade to the best.  Of two images one is better
with the probability that it alone shows the text.  Nothing else of a question is read.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, exp, log
from typing import Any

import numpy as np

from models.checkpoints.locate import model_arguments
from models.core.calls import AnswerCall, Call, LabelCall, LikelihoodCall, images_of
from models.core.contract import ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import CallResult, Choices, Likelihood, Text
from models.core.settings import LocalSettings
from models.families.clip_flant5.model import ClipFlanT5
from models.families.demo_grader import FAMILY

QUOTED_TEXT = re.compile(r'"([^"\n]+)"(?!:)')  # a key of a JSON form has a colon behind it
IMAGE_NUMBER = re.compile(r"\bpicture (\d+)\b", re.IGNORECASE)

AnswerFunction = Callable[[Sequence["YesNo"]], CallResult]


@dataclass(frozen=True, slots=True)
class YesNo:
    """Logarithms of the probabilities of yes and no, which are all answers."""

    yes: float
    no: float

    @classmethod
    def of(cls, outcome: Likelihood) -> "YesNo":
        """Return the probabilities of an outcome, without those of all other answers."""
        both = float(np.logaddexp(outcome.log_p_yes, outcome.log_p_no))
        return cls(outcome.log_p_yes - both, outcome.log_p_no - both)

    def grades(self, count: int) -> list[float]:
        """Return the logarithms of the probabilities of *count* grades, the worst first."""
        most = count - 1
        return [log(comb(most, k)) + k * self.yes + (most - k) * self.no for k in range(count)]


@dataclass(frozen=True, slots=True)
class GradedQuestion:
    """The prepared calls about the images of a question, and what their outcomes answer."""

    answer: AnswerFunction
    calls: Sequence[Prepared]


class DemoGrader:
    """A grader by the answers of *vqa*."""

    def __init__(self, vqa: ClipFlanT5) -> None:
        self._vqa = vqa
        self.info = replace(vqa.info, family=FAMILY.name, repeatable=True)

    def prepare(self, call: Call) -> Prepared:
        """
        Prepare a call of the VQA model for each image.

        Raises:
            ModelError: the call is about something else than a quoted text and one image, or two to compare.
        """
        match call:
            case LabelCall(image, question, labels, before) if rivals := images_of(before):
                images, answer = [*rivals, image], preferring(question, labels, len(rivals) + 1)
            case LabelCall(image, question, labels):
                images, answer = [image], grading(labels)
            case AnswerCall(image, question, before, schema=schema) if not images_of(before):
                images, answer = [image], writing(schema)
            case _:
                raise ModelError("the demo grader grades one picture, or compares two")
        text = self.info.question.replace("{}", quoted(question))
        calls = [self._vqa.prepare(LikelihoodCall(each, text)) for each in images]
        return Prepared(sum(each.cost for each in calls), GradedQuestion(answer, calls))

    def score(self, batch: Sequence[Prepared]) -> list[CallResult | ModelError]:
        """Answer the calls of *batch* by one batch of the VQA model."""
        questions: list[GradedQuestion] = [each.data for each in batch]
        outcomes = iter(self._vqa.score([call for asked in questions for call in asked.calls]))
        return [answered(asked, [next(outcomes) for _ in asked.calls]) for asked in questions]

    def example(self) -> LabelCall:
        return LabelCall(grey(336, 336), 'How much of "a red circle" is there?', tuple("12345"))


def quoted(question: str) -> str:
    """Return the only text in double quotes.  Raises `ModelError`."""
    found = QUOTED_TEXT.findall(question)
    if len(found) != 1:
        raise ModelError(
            "the demo grader grades whether a picture shows the text in double quotes:"
            f" the question has {len(found) or 'none'} of them, and it takes one"
        )
    return str(found[0])


def answered(asked: GradedQuestion, outcomes: Sequence[CallResult | ModelError]) -> CallResult | ModelError:
    """Return the answer to a question, with what the VQA model could not read of it."""
    read: list[Likelihood] = []
    for outcome in outcomes:
        if not isinstance(outcome, Likelihood):
            return outcome
        read.append(outcome)
    answer = asked.answer([YesNo.of(each) for each in read])
    if not isinstance(answer, Choices):
        return answer
    unknown = max(each.unknown for each in read)
    return replace(answer, truncated=any(each.truncated for each in read), unknown=unknown)


def grading(labels: Sequence[str]) -> AnswerFunction:
    """
    Return the answer by labels: digits, letters of which A is the best, or yes and no.

    Raises:
        ModelError: the labels are others.
    """
    if {*labels} == {"Yes", "No"}:
        worst_first = ["No", "Yes"]
    elif all(label.isdecimal() for label in labels):
        worst_first = sorted(labels, key=int)
    elif all(len(label) == 1 and label.isalpha() for label in labels):
        worst_first = sorted(labels, reverse=True)
    else:
        raise ModelError("the demo grader answers by digits, by letters, or with yes or no")

    def answer(shown: Sequence[YesNo]) -> Choices:
        of = dict(zip(worst_first, shown[0].grades(len(worst_first)), strict=True))
        return Choices(tuple((min(0.0, of[label]),) for label in labels))  # rounding

    return answer


def preferring(question: str, labels: Sequence[str], images: int) -> AnswerFunction:
    """
    Return the answer by labels that each name the better image by its number, or none for both.

    Raises:
        ModelError: there are not two *images*, or the labels are others.
    """
    lines = dict(line.split(": ", 1) for line in question.splitlines() if ": " in line)
    named = {label: set(IMAGE_NUMBER.findall(lines.get(label, ""))) for label in labels}
    better = {label: min(numbers, default="") for label, numbers in named.items()}
    if images != 2 or sorted(better.values()) != ["", "1", "2"] or any(len(n) > 1 for n in named.values()):
        raise ModelError(
            "the demo grader compares two pictures, by labels of picture 1, of picture 2 and of both"
        )

    def answer(shown: Sequence[YesNo]) -> Choices:
        first, second = shown
        both = float(np.logaddexp(first.yes + second.yes, first.no + second.no))
        of = {"1": first.yes + second.no, "2": first.no + second.yes, "": both}
        return Choices(tuple((min(0.0, of[better[label]]),) for label in labels))

    return answer


def writing(schema: Mapping[str, Any] | None) -> AnswerFunction:
    """
    Return the answer in JSON: one grade, the nearest to the share p, and texts that say p.

    Raises:
        ModelError: the form has no grade, or several.
    """
    forms = schema["properties"] if schema else {}
    texts = [name for name, form in forms.items() if form == {"type": "string"}]
    graded = {name: steps for name, form in forms.items() if (steps := steps_of(form))}
    if len(graded) != 1 or len(texts) + 1 != len(forms):
        raise ModelError("the demo grader writes JSON with one grade, or yes or no, and texts")
    [(grade, steps)] = graded.items()

    def answer(shown: Sequence[YesNo]) -> Text:
        p = exp(shown[0].yes)
        said = f"{'yes' if p > 0.5 else 'no'}: it is shown with the probability {p:.2f}"
        nearest = steps[round(p * (len(steps) - 1))]
        return Text(json.dumps({name: nearest if name == grade else said for name in forms}))

    return answer


def steps_of(form: Mapping[str, Any]) -> list[Any]:
    """Return the answers of a form of JSON, the worst first; empty if their order is unknown."""
    match form:
        case {"type": "integer", "enum": values}:
            return sorted(values)
        case {"enum": values} if {*values} == {"yes", "no"}:
            return ["no", "yes"]
    return []


def from_settings(settings: LocalSettings) -> DemoGrader:
    """Load the grader of a table.  Raises `CheckpointError`."""
    return DemoGrader(ClipFlanT5(**model_arguments(settings)))
