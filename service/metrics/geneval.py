"""GenEval (Ghosh et al. 2023): the objects that a prompt asks for, found by a detector."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from models.core.outcomes.detections import Box
from service.core.errors import NoMasks, NoTask
from service.core.fields import Prompt
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Detector, Models
from service.metrics.objects.checks import Verdict, coloured, verdict
from service.metrics.objects.classes import CLASSES, check_known, names_of
from service.metrics.objects.colours import colours_of
from service.metrics.objects.found import THRESHOLD, Found, by_class
from service.metrics.objects.positions import PositionRule
from service.metrics.objects.rewards import Reward, reward
from service.metrics.objects.tasks import MAX_CLAUSES, Exclude, Include, Tag, Task, check
from service.metrics.objects.templates import task_of
from service.metrics.objects.trainers import FORMAT
from service.observability.notes import Code, Note
from service.serving.demand import Demand

OF_ANOTHER = Note(Code.METADATA_OF_ANOTHER_PROMPT, "options.geneval are the metadata of another prompt")


class GenEvalOptions(MetricOptions):
    """
    Options of `geneval`: a line of GenEval's metadata, and a rule.

    Attributes:
        tag, include: what the image should show; what the prompt says by default.
        exclude: what it should not show; taken with `include` alone.
        prompt: that the metadata are for.  There is a warning where the item has another.
    """

    tag: Tag | None = None
    include: Annotated[list[Include], Field(min_length=1, max_length=MAX_CLAUSES, fail_fast=True)] | None = (
        None
    )
    exclude: Annotated[list[Exclude], Field(max_length=MAX_CLAUSES, fail_fast=True)] | None = None
    prompt: Prompt | None = None
    position_rule: PositionRule = "released"


# One object: how sure the detector is; left, top, right and bottom in pixels from the top left of the image;
# its colour as CLIP has it, null where nothing depended on it.
GenEvalObject = TypedDict("GenEvalObject", {"class": str, "score": float, "box": Box, "color": str | None})


class GenEvalDetails(TypedDict):
    """
    What a `geneval` is made of.

    Attributes:
        correct: whether all checks passed.
        reason: which did not, a line each; empty where all passed.
        tag, include, exclude: what was checked.
        width, height: of the image.
        strict, reward: what trainers take: whether there are exactly so many objects, and the mean of what
            each count, colour and position gives.
        boxes: all objects that the detector scores above 0.3, the surest first.
    """

    correct: bool
    reason: str
    tag: str
    include: list[dict[str, Any]]
    exclude: list[dict[str, Any]]
    position_rule: str
    width: int
    height: int
    strict: bool
    reward: float
    boxes: list[GenEvalObject]


async def geneval(item: Item, models: Models, options: GenEvalOptions) -> Score:
    """
    1 where the image shows the objects, number, colours and position that its prompt asks for, else 0.

    Everything is as in the released code but the models: its detector is Mask2Former with Swin-S of
    MMDetection, its CLIP OpenAI's ViT-L/14.

    Raises:
        NoTask: the prompt is none of GenEval's, and the options have no metadata.
        UnknownClass: the detector does not know an object.
        NoMasks: a colour matters, and the detector draws no masks.
    """
    task = task_for(item.prompt, options)
    found = await detected(item, models.detector, task)
    colours = await colours_of(item.image, coloured(task, by_class(found, task.tag)), models)
    found = [replace(each, colour=colours.get(each)) for each in found]
    counted, rule = by_class(found, task.tag), options.position_rule
    judged, given = verdict(task, counted, rule), reward(task, counted, rule)
    about_another = options.prompt is not None and options.prompt != item.prompt
    warnings = (OF_ANOTHER,) if about_another else ()
    shown = details(task, found, rule, judged, given, item.image.size)
    return Score(float(judged.correct), shown, warnings=warnings)


def task_for(prompt: str, options: GenEvalOptions) -> Task:
    """What an image should show.  Raises `NoTask`."""
    if options.include is None:
        if options.tag or options.exclude:
            raise NoTask("options.geneval has a tag or an exclude, and no include")
        return task_of(prompt)
    if options.tag is None:
        raise NoTask("options.geneval has an include, and no tag")
    task = Task(tag=options.tag, include=options.include, exclude=options.exclude or [])
    return check(task, "options.geneval")


async def detected(item: Item, detector: Detector, task: Task) -> list[Found]:
    """
    The objects in an image, the surest first, by the names that GenEval has for their classes.

    A detector that finds whatever it is told to look for is told all 80 classes, so that what a prompt does
    not name is not taken for what it names.
    """
    names = names_of(detector.labels)
    if names:
        check_known(task.classes, [*names.values()], f"the detector {detector.name}")
    if not detector.masks and any(clause.color for clause in task.include):
        raise NoMasks(
            f"the detector {detector.name} draws no masks, and colours are told from an object's pixels"
        )
    wanted = [*dict.fromkeys([*CLASSES, *task.classes])]
    detections = await detector.find(item.image, wanted, THRESHOLD)
    return [
        Found(names.get(each.label, each.label), each.score, each.box, seen=each) for each in detections.found
    ]


def details(
    task: Task,
    found: Sequence[Found],
    rule: PositionRule,
    judged: Verdict,
    given: Reward,
    size: tuple[int, int],
) -> GenEvalDetails:
    """The verdict with what it rests on."""
    said = task.model_dump(by_alias=True, exclude_none=True)
    boxes: Any = [
        {"class": each.name, "score": each.score, "box": each.box, "color": each.colour} for each in found
    ]
    return {
        "correct": judged.correct,
        "reason": judged.reason,
        "tag": task.tag,
        "include": said["include"],
        "exclude": said["exclude"],
        "position_rule": rule,
        "width": size[0],
        "height": size[1],
        "strict": given.strict,
        "reward": given.value,
        "boxes": boxes,
    }


def demand(prompt: str, options: GenEvalOptions) -> Mapping[str, Demand]:
    """One look of the detector, and one of CLIP at each object with a colour; texts are soon cached."""
    try:
        clauses = task_for(prompt, options).include
    except NoTask:  # said when it is scored, of this item alone
        return {}
    return {"detector": Demand(), "clip": Demand(sum(clause.count for clause in clauses if clause.color))}


metric = Metric(
    "geneval",
    geneval,
    options=GenEvalOptions,
    details=GenEvalDetails,
    roles=("detector",),
    demand_of=demand,
    may_use=("clip",),
    without={"clip": "prompts without colours"},
    range=(0, 1),
    formula="[all objects, their number, colours and position are as the prompt asks]",
    paper="Ghosh et al. 2023, arXiv 2310.11513",
    trainers=FORMAT,
)
