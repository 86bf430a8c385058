"""
Tasks as in GenEval's metadata: the objects that an image should show, their number, colours and positions.

The field names are those of `evaluation_metadata.jsonl`.  A task is also parsed from one of GenEval's own
prompts (Ghosh et al. 2023, appendix C.1), or from a line of metadata as trainers send it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from service.core.errors import Invalid, NoTask, UnknownClass
from service.core.fields import CLEAN_PATTERN, WHOLE, Strict, clean, schema_keywords
from service.metrics.common.contract import MetricOptions, Score, TrainerFormat

Tag = Literal["single_object", "two_object", "counting", "colors", "position", "color_attr"]
Colour = Literal["red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "black", "white"]
SpatialRelation = Literal["left of", "right of", "above", "below"]

MAX_CLAUSES = 16
MAX_COUNT = 100

ClassName = Annotated[
    str, Field(min_length=1, max_length=64), AfterValidator(clean), schema_keywords(pattern=CLEAN_PATTERN)
]
ObjectCount = Annotated[int, Field(ge=1, le=MAX_COUNT), WHOLE]
Index = Annotated[int, Field(ge=0, lt=MAX_CLAUSES), WHOLE]


def as_tuple(value: Any) -> Any:
    """Convert JSON's list of a relation and an index."""
    return tuple(value) if isinstance(value, list) else value


class Clause(Strict):
    """A number of objects of a class."""

    name: ClassName = Field(alias="class")
    count: ObjectCount


class Include(Clause):
    """
    Objects that the image should show.

    Attributes:
        count: the least number.
        color: of that many objects, those with the highest confidence.
        position: relative to the objects of an earlier clause (its number, from 0).
    """

    color: Colour | None = None
    position: Annotated[tuple[SpatialRelation, Index], BeforeValidator(as_tuple)] | None = None


class Exclude(Clause):
    """Objects of which there should be fewer than `count`."""


class Task(Strict):
    """
    The objects that an image should show, and those that it should not.

    Attributes:
        tag: one of GenEval's six tasks.
    """

    tag: Tag
    include: list[Include]
    exclude: list[Exclude] = Field(default_factory=list)

    @property
    def classes(self) -> list[str]:
        """The distinct classes of all clauses."""
        clauses: Sequence[Clause] = [*self.include, *self.exclude]
        return [*dict.fromkeys(clause.name for clause in clauses)]

    def faults(self) -> Iterator[str]:
        """Yield faults of the clauses as a whole."""
        if not self.include:
            yield "include has no clause"
        for number, clause in enumerate(self.include):
            if clause.position and (target := clause.position[1]) >= number:
                yield f"include[{number}].position must name an earlier clause, and names {target}"


def check(task: Task, where: str) -> Task:
    """Return *task*.  Raises `NoTask` if its clauses contradict each other."""
    for fault in task.faults():
        raise NoTask(f"{where}.{fault}")
    return task


# fmt: off
CLASSES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "computer mouse", "tv remote",
    "computer keyboard", "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book",
    "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush",
)
# fmt: on

# COCO's names that differ from GenEval's, and names of Pascal VOC in some checkpoints.
OTHER_NAMES = {
    "airplane": "aeroplane",
    "computer keyboard": "keyboard",
    "computer mouse": "mouse",
    "couch": "sofa",
    "dining table": "diningtable",
    "motorcycle": "motorbike",
    "potted plant": "pottedplant",
    "tv": "tvmonitor",
    "tv remote": "remote",
}


def names_of(labels: Sequence[str]) -> dict[str, str]:
    """Return GenEval's name for each of a detector's labels; the label itself if there is none."""
    others = {other: name for name, other in OTHER_NAMES.items()}
    return {label: others.get(label, label) for label in labels}


def check_known(classes: Sequence[str], known: Sequence[str], whose: str) -> None:
    """Raise `UnknownClass` for the first of *classes* that is not *known*."""
    for name in classes:
        if name not in known:
            raise UnknownClass(f"{name!r} is not a class of {whose}")


MAX_QUOTED = 80  # characters of a prompt in an error


def article(name: str) -> str:
    """Return *name* after "a" or "an"."""
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def plural(name: str) -> str:
    """Return the plural as in the prompts: "s", or "es" after an "s", against grammar if need be."""
    return f"{name}es" if name.endswith("s") else f"{name}s"


OBJECTS = {article(name): name for name in CLASSES}
COLOURS = {article(colour): colour for colour in get_args(Colour)}
PLURALS = {plural(name): name for name in CLASSES}
NUMBERS = {"two": 2, "three": 3, "four": 4}


def group(name: str, words: Iterable[str]) -> str:
    """Return a pattern of any of *words*."""
    return f"(?P<{name}>{'|'.join(map(re.escape, words))})"


A, B = group("a", OBJECTS), group("b", OBJECTS)
COLOURED_A = f"{group('colour_a', COLOURS)} {group('a', CLASSES)}"
COLOURED_B = f"{group('colour_b', COLOURS)} {group('b', CLASSES)}"
TEMPLATES: dict[Tag, re.Pattern[str]] = {
    "single_object": re.compile(A),
    "two_object": re.compile(f"{A} and {B}"),
    "counting": re.compile(f"{group('number', NUMBERS)} {group('many', PLURALS)}"),
    "colors": re.compile(COLOURED_A),
    "position": re.compile(f"{A} {group('relation', get_args(SpatialRelation))} {B}"),
    "color_attr": re.compile(f"{COLOURED_A} and {COLOURED_B}"),
}


def task_of(prompt: str) -> Task:
    """
    Return the task of a prompt.

    Raises:
        NoTask: it fits none of the templates, names an object outside the 80 classes, or names one twice.
    """
    body = prompt.strip().removeprefix("a photo of ")
    if body != prompt.strip():
        for tag, template in TEMPLATES.items():
            if (match := template.fullmatch(body)) and (clauses := clauses_of(tag, match.groupdict())):
                return Task.model_validate({"tag": tag, **clauses})
    quoted = prompt if len(prompt) <= MAX_QUOTED else f"{prompt[:MAX_QUOTED]}…"
    raise NoTask(
        f'"{quoted}" fits none of GenEval\'s templates with its 80 classes of objects;'
        " send the options tag and include, which list the objects"
    )


def clauses_of(tag: Tag, said: Mapping[str, str]) -> dict[str, Any]:
    """Return the clauses of a prompt from its parts; empty if both of its objects are the same."""
    if tag == "counting":
        name, count = PLURALS[said["many"]], NUMBERS[said["number"]]
        clause = {"class": name, "count": count}
        return {"include": [clause], "exclude": [{**clause, "count": count + 1}]}
    named = [
        {
            "class": OBJECTS.get(said[key], said[key]),
            "count": 1,
            **({"color": COLOURS[said[f"colour_{key}"]]} if f"colour_{key}" in said else {}),
        }
        for key in ("a", "b")
        if key in said
    ]
    if len({clause["class"] for clause in named}) < len(named):
        return {}
    if tag == "position":  # the object that the position refers to comes first
        named = [named[1], {**named[0], "position": [said["relation"], 0]}]
    return {"include": named}


METADATA_FIELDS = ("tag", "include", "exclude", "prompt")  # other fields of a line are ignored
NOT_OF_THE_TASK = -10.0  # trainers leave it out

M = TypeVar("M", bound=MetricOptions)


def options_of(line: Any, options: M) -> M:
    """Return *options* with the values of a *line* of metadata.  Raises `Invalid`."""
    if not isinstance(line, Mapping):
        raise Invalid("must be a dict of GenEval's metadata")
    said = {name: line[name] for name in METADATA_FIELDS if name in line}
    if lacking := [name for name in ("tag", "include", "prompt") if said.get(name) is None]:
        raise Invalid(f"has no {lacking[0]}")
    try:
        return type(options).model_validate(options.model_dump(exclude_unset=True) | said)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = "/".join(map(str, first["loc"]))
        raise Invalid(f"{place}: {first['msg'].removeprefix('Value error, ')}") from exc


def answered(scores: Sequence[Score]) -> dict[str, Any]:
    """Return the response of their reward servers, with both kinds of rewards for any request."""
    shown = [score.details for score in scores]
    correct = [float(each["correct"]) for each in shown]
    strict = [float(each["strict"]) for each in shown]
    tags = [each["tag"] for each in shown]
    return {
        "scores": [float(each["reward"]) for each in shown],
        "rewards": correct,
        "strict_rewards": strict,
        "group_rewards": by_task(correct, tags),
        "group_strict_rewards": by_task(strict, tags),
    }


def by_task(values: Sequence[float], tags: Sequence[str]) -> dict[str, list[float]]:
    """Return the values of each task, with -10 for images of another one."""
    return {
        task: [value if tag == task else NOT_OF_THE_TASK for value, tag in zip(values, tags, strict=True)]
        for task in get_args(Tag)
    }


TRAINER_FORMAT: TrainerFormat[Any] = TrainerFormat("meta_datas", options_of, answered)
