"""Objects that a detector found in pictures, checked as djghosh13/geneval checks them."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.core.errors import NoTask, UnknownClass
from service.core.text_files import MAX_LINE, lines
from service.metrics.objects.checks import coloured, verdict
from service.metrics.objects.classes import CLASSES, check_known
from service.metrics.objects.found import Found, by_class
from service.metrics.objects.positions import PositionRule
from service.metrics.objects.tasks import Colour, Task, check
from service.metrics.replay.contract import Replay

Finite = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]


class Lenient(BaseModel):
    """What is not needed is not looked at."""

    model_config = ConfigDict(extra="ignore")


class Detection(Lenient):
    """One object."""

    name: str = Field(alias="class")
    score: Share
    box: Annotated[list[Finite], Field(min_length=4, max_length=4)]
    color: Colour | None = None


class Metadata(Task):
    """A line of GenEval's metadata, which has its prompt, too."""

    prompt: str = ""


class Case(Lenient):
    """One picture: what it should show, and what was found in it."""

    metadata: Metadata
    detections: list[Detection]


def add_arguments(parser: ArgumentParser) -> None:
    """The file, and the rule for positions."""
    parser.add_argument("--cases", type=Path, required=True, help="JSON Lines: metadata and detections")
    parser.add_argument("--position-rule", choices=get_args(PositionRule), default="released")


def verdicts(arguments: Namespace) -> Sequence[Mapping[str, Any]]:
    """`{"correct", "reason"}` of each case.  Raises `ValueError`, which names the line and the field."""
    found = []
    for number, line in lines(arguments.cases):
        place = f"{arguments.cases}: line {number}"
        if len(line) > MAX_LINE:
            raise ValueError(f"{place} has more than {MAX_LINE} bytes")
        try:
            found.append(judged(Case.model_validate_json(line), arguments.position_rule))
        except ValidationError as exc:
            first = exc.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the line"
            raise ValueError(f"{place}: {where}: {first['msg']}") from exc
        except (NoTask, UnknownClass) as exc:
            raise ValueError(f"{place}: {exc.detail}") from exc
    return found


def judged(case: Case, rule: PositionRule) -> Mapping[str, Any]:
    """The verdict on one case.  Raises `NoTask`, also where a colour is missing, or `UnknownClass`."""
    task = check(case.metadata, "metadata")
    check_known(task.classes, CLASSES, "GenEval")
    found = [
        Found(each.name, each.score, (each.box[0], each.box[1], each.box[2], each.box[3]), each.color)
        for each in case.detections
    ]
    objects = by_class(found, task.tag)
    for each in coloured(task, objects):
        if each.colour is None:
            raise NoTask(f"detections: the color of a {each.name} is missing, and decides")
    return verdict(task, objects, rule)._asdict()


replay = Replay("GenEval's checks of the objects in pictures", add_arguments, verdicts)
