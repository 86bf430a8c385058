"""Objects that a detector found in pictures, checked as djghosh13/geneval checks them."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from scoregate.evaluation.replay.faults import first_fault, parsed
from service.core.errors import NoTask, UnknownClass
from service.core.text_files import MAX_LINE, lines
from service.metrics.geneval import GenEvalOptions
from service.metrics.objects.checks import coloured, verdict
from service.metrics.objects.classes import CLASSES, check_known
from service.metrics.objects.detected import DetectedObject, by_class
from service.metrics.objects.tasks import Colour, Task, check

Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


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


class Case(Lenient):
    """One picture: the objects it should show, and the detected ones."""

    metadata: Metadata
    detections: list[Detection]


def figures(arguments: Namespace) -> Sequence[Mapping[str, Any]]:
    """
    Return `{"correct", "reason"}` for each case.

    Raises:
        ValueError: there is no case; an option or a case is invalid, and the message has the option, or the
            line and the field.
    """
    options, found = options_of(arguments), []
    for number, line in lines(arguments.cases):
        place = f"{arguments.cases}: line {number}"
        if len(line) > MAX_LINE:
            raise ValueError(f"{place} has more than {MAX_LINE} bytes")
        try:
            found.append(judged(parsed(Case, line, place), options))
        except (NoTask, UnknownClass) as exc:
            raise ValueError(f"{place}: {exc.detail}") from exc
    if not found:
        raise ValueError(f"{arguments.cases}: there is no case")
    return found


def options_of(arguments: Namespace) -> GenEvalOptions:
    """Return the options of the metric that are among the arguments.  Raises `ValueError`."""
    given = {name: value for name, value in vars(arguments).items() if name in GenEvalOptions.model_fields}
    try:
        return GenEvalOptions.model_validate(given)
    except ValidationError as exc:
        raise ValueError(first_fault(exc)) from exc


def judged(case: Case, options: GenEvalOptions) -> Mapping[str, Any]:
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
