"""Published answers in JSON: TIFA's sample, Gecko's verdicts, and detected objects of GenEval."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.core.errors import NoTask, UnknownClass
from service.core.text_files import MAX_LINE, lines, opened
from service.metrics.geneval import GenEvalOptions
from service.metrics.objects.checks import coloured, verdict
from service.metrics.objects.detections import DetectedObject, by_class
from service.metrics.objects.tasks import CLASSES, Colour, Task, check, check_known
from service.metrics.tifa import fold as tifa_fold
from service.questions.sets import Question

M = TypeVar("M", bound=BaseModel)

BLOCK = re.compile(r"Question:(.*?)Verdict:([^\n]*)", re.DOTALL)
Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


def parsed(kind: type[M], data: bytes, place: str) -> M:
    """
    Parse JSON; *place* is where it stands.

    Raises:
        ValueError: it is not of this *kind*, or an object has a key twice, of which a parser keeps one.
    """
    try:
        json.loads(data, object_pairs_hook=once)
        return kind.model_validate_json(data)
    except ValidationError as exc:
        raise ValueError(f"{place}: {first_fault(exc)}") from exc
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"{place}: the line: {exc}") from exc


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object.  Raises `ValueError` if a key is there twice."""
    found = dict[str, Any]()
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice")
        found[key] = value
    return found


def first_fault(exc: ValidationError) -> str:
    """Return the field and the message of the first error."""
    first = exc.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg']}"


class AnsweredQuestion(BaseModel):
    """A question with its answer; other fields are kept."""

    model_config = ConfigDict(extra="allow", strict=True)

    answer: str
    choices: list[str]
    element_type: str
    multiple_choice_vqa: str


class Evaluation(BaseModel):
    """The answers by picture, then by question; the file's figures are not read."""

    question_details: dict[str, dict[str, AnsweredQuestion]]


def tifa(answers: Path) -> dict[str, Any]:
    """
    Return the whole result, computed from its questions and answers.

    The average and the sample standard deviation are over the pictures, the accuracies over the questions
    of a type.
    """
    images = evaluation(answers).question_details
    scores, details = {}, {}
    by_type = defaultdict(list)
    for image, entries in images.items():
        questions = [
            Question(number, text, one.element_type, expected=one.answer, choices=tuple(one.choices))
            for number, (text, one) in enumerate(entries.items())
        ]
        given = {number: one.multiple_choice_vqa for number, one in enumerate(entries.values())}
        scores[image], counts = tifa_fold(questions, given)
        for question in questions:
            by_type[question.kind].append(counts[question.id])
        details[image] = {
            text: {**one.model_dump(), "scores": counts[number]}
            for number, (text, one) in enumerate(entries.items())
        }
    return {
        "tifa_average": fmean(scores.values()),
        "tifa_stdev": stdev(scores.values()),
        "accuracy_by_type": {kind: fmean(counts) for kind, counts in by_type.items()},
        "question_details": details,
        "caption_scores": scores,
    }


def evaluation(path: Path) -> Evaluation:
    """Read the file.  Raises `ValueError` for another shape, a key twice, or fewer than two pictures."""
    with opened(path) as file:
        content = file.read()
    found = parsed(Evaluation, content, str(path))
    if len(found.question_details) < 2 or not all(found.question_details.values()):
        raise ValueError(f"{path}: there must be questions about two pictures or more")
    return found


class VerdictPair(BaseModel):
    """A question of the rubric, and its expected answer."""

    model_config = ConfigDict(extra="ignore")

    question: str
    answer: str = Field(min_length=1)  # an empty one is in every verdict
    question_type: str = ""


class ImageVerdicts(BaseModel):
    """The rubric of a prompt and the verdicts on one picture: by question, or the validator's text."""

    model_config = ConfigDict(extra="ignore")

    qas: list[VerdictPair] = Field(min_length=1)
    rubric_results: dict[str, str] | str

    def verdicts(self) -> Mapping[str, str]:
        """Return the verdicts by question, in lower case.  Raises `ValueError` if a question has two."""
        given, found = self.rubric_results, dict[str, str]()
        for text, answer in BLOCK.findall(given) if isinstance(given, str) else given.items():
            question, verdict = text.strip().lower(), answer.strip().lower()
            if found.setdefault(question, verdict) != verdict:
                raise ValueError(f"{question!r} has two verdicts: {found[question]} and {verdict}")
        return found


def gecko(answers: Path) -> dict[str, Any]:
    """
    Return the mean score of the pictures, each picture's, and the share of right answers by type.

    A verdict is right if it contains the expected answer.  A question without a verdict counts 0, as there;
    `missing` counts them.  A picture without any verdict is an error.

    Raises:
        OSError, ValueError: the file cannot be used; the message has line and field.
    """
    scores, missing = [], 0
    by_type = defaultdict(list)
    for number, line in lines(answers):
        place = f"{answers}: line {number}"
        image = verdicts_in(line, place)
        found = verdicts_on(image, place)
        missing += found.count(None)
        right = [
            float(verdict is not None and pair.answer.lower() in verdict)
            for pair, verdict in zip(image.qas, found, strict=True)
        ]
        scores.append(fmean(right))
        for pair, count in zip(image.qas, right, strict=True):
            by_type[pair.question_type].append(count)
    if not scores:
        raise ValueError(f"{answers}: there is no picture")
    accuracy = {kind: fmean(counts) for kind, counts in by_type.items()}
    return {
        "mean": fmean(scores),
        "n": len(scores),
        "missing": missing,
        "accuracy_by_type": accuracy,
        "scores": scores,
    }


def verdicts_on(image: ImageVerdicts, place: str) -> list[str | None]:
    """Return the verdict on each question of the rubric.  Raises `ValueError` if there is none at all."""
    try:
        verdicts = image.verdicts()
    except ValueError as exc:
        raise ValueError(f"{place}: rubric_results: {exc}") from exc
    found = [verdicts.get(pair.question.strip().lower()) for pair in image.qas]
    if not any(verdict is not None for verdict in found):
        raise ValueError(f"{place}: rubric_results: no question of the rubric has a verdict")
    return found


def verdicts_in(line: bytes, place: str) -> ImageVerdicts:
    if len(line) > MAX_LINE:
        raise ValueError(f"{place} has more than {MAX_LINE} bytes")
    return parsed(ImageVerdicts, line, place)


class Lenient(BaseModel):
    """A model that ignores unknown fields."""

    model_config = ConfigDict(extra="ignore")


class Detection(Lenient):
    """One detected object."""

    name: str = Field(alias="class")
    score: Share
    box: Annotated[list[Finite], Field(min_length=4, max_length=4)]
    color: Colour | None = None


class Metadata(Task):
    """A line of GenEval's metadata: a task with its prompt."""

    prompt: str = ""


class VerdictCase(Lenient):
    """One picture: the objects it should show, and the detected ones."""

    metadata: Metadata
    detections: list[Detection]


def geneval(cases: Path, **options: Any) -> Sequence[Mapping[str, Any]]:
    """
    Return `{"correct", "reason"}` for each case.

    Raises:
        ValueError: there is no case; an option or a case is invalid, and the message has the option, or the
            line and the field.
    """
    limits, found = options_of(options), []
    for number, line in lines(cases):
        place = f"{cases}: line {number}"
        if len(line) > MAX_LINE:
            raise ValueError(f"{place} has more than {MAX_LINE} bytes")
        try:
            found.append(judged(parsed(VerdictCase, line, place), limits))
        except (NoTask, UnknownClass) as exc:
            raise ValueError(f"{place}: {exc.detail}") from exc
    if not found:
        raise ValueError(f"{cases}: there is no case")
    return found


def options_of(given: Mapping[str, Any]) -> GenEvalOptions:
    """Return the options of the metric.  Raises `ValueError`."""
    try:
        return GenEvalOptions.model_validate(given)
    except ValidationError as exc:
        raise ValueError(first_fault(exc)) from exc


def judged(case: VerdictCase, options: GenEvalOptions) -> Mapping[str, Any]:
    """Return the verdict on one case.  Raises `NoTask`, also for a missing colour, or `UnknownClass`."""
    task = check(case.metadata, "metadata")
    check_known(task.classes, CLASSES, "GenEval")
    found = [
        DetectedObject(
            each.name, each.score, (each.box[0], each.box[1], each.box[2], each.box[3]), each.color
        )
        for each in case.detections
    ]
    objects = by_class(found, task.tag, options.limits)
    for each in coloured(task, objects):
        if each.colour is None:
            raise NoTask(f"detections: the color of a {each.name} is missing, and decides")
    return verdict(task, objects, options.position_rule, options.position_threshold)._asdict()
