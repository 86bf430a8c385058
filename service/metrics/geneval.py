"""
GenEval (Ghosh et al. 2023): the objects of a prompt, found by a detector.

A detector finds the objects, and `clip` names their colours. The score is 1 if they are those of the
prompt, else 0:

* `single_object`, `two_object`: there is one, or more; there are both
* `counting`: there are exactly as many, two to four
* `colors`: the object with the highest confidence has the colour
* `position`: of both classes the objects with the highest confidence stand so
* `color_attr`: both have their colours

The objects are the 80 classes of COCO. All 553 prompts of GenEval are parsed into their metadata. Any other
prompt needs a line of metadata as the option of its item (`exclude` is optional):

```json
{"prompt": "a dog, and a cat to its left", "image": "…",
 "options": {"geneval": {
   "tag": "position",
   "include": [{"class": "dog", "count": 1}, {"class": "cat", "count": 1, "position": ["left of", 0]}]}}}
```

**The checks** are those of the released code, with its constants; on 299 sets of detections all verdicts
and reasons are equal.

* An object counts if its confidence is above 0.3 (`threshold`), in `counting` above 0.9
  (`counting_threshold`); for each class the 16 (`max_objects`) with the highest confidence. Overlapping
  boxes all count, unless `max_overlap` sets the intersection over union from which a second one does not.
* `include` needs at least its number of objects. `exclude` fails at its number or more, which makes a count
  exact.
* Only the objects with the highest confidence are checked for colour and position, as many as the clause
  has.
* The centres of two boxes must differ by more than a tenth (`position_threshold`) of the sum of their
  widths (or heights). By the released `position_rule`, not the paper's, the rest beyond that margin must
  also be more than half of the distance.
* An object's colour is the one of ten that is nearest by CLIP to its cut-out (by its mask, on grey).
  `bgcolor` is another background, or `"original"`; without `crop` it is the whole picture.

With `explain`, `details` has `correct`, `reason` (a line for each clause that fails), the clauses, the size
of the picture, `boxes` (class, score, box and colour of each object), and `strict` and `reward` for trainers.

The released code has OpenAI's ViT-L/14 (`model = "ViT-L-14-quickgelu"`, `pretrained = "openai"`), and a
Mask2Former with Swin-S from MMDetection, trained apart from the checkpoints of transformers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from models.core.outcomes import Box
from service.core.errors import NoMasks, NoTask
from service.core.fields import WHOLE, Prompt
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Detector, ModelCalls
from service.metrics.objects.checks import (
    POSITION_MARGIN,
    ObjectReward,
    PositionRule,
    TaskCheck,
    coloured,
    reward,
    verdict,
)
from service.metrics.objects.detections import (
    BACKGROUND,
    ORIGINAL,
    RELEASED_LIMITS,
    Cutout,
    DetectedObject,
    Limits,
    by_class,
    colours_of,
)
from service.metrics.objects.tasks import (
    CLASSES,
    MAX_CLAUSES,
    TRAINER_FORMAT,
    Exclude,
    Include,
    Tag,
    Task,
    check,
    check_known,
    names_of,
    task_of,
)
from service.observability.notes import Code, Note
from service.serving.admission import Demand

Threshold = Annotated[float, Field(ge=0.05, le=1)]  # less would be any region of a picture
OTHER_PROMPT_NOTE = Note(
    Code.METADATA_OF_ANOTHER_PROMPT, "options.geneval are the metadata of another prompt"
)


class GenEvalOptions(MetricOptions):
    """
    Options of `geneval`: a line of GenEval's metadata, and the options of its released code.

    Attributes:
        tag, include: the objects that the picture should show; taken from the prompt by default.
        exclude: objects that it should not show; only with `include`.
        prompt: of the metadata.  The score has a warning if the item's prompt differs.
        position_rule: of the released code, or of the paper.
        threshold: least confidence of an object.
        counting_threshold: likewise in the task `counting`.
        max_objects: most objects of a class, those with the highest confidence.
        max_overlap: the intersection over union from which a second box of a class does not count.
        position_threshold: least distance of two centers, as a share of both sizes.
        crop: name the colour of the object's cut-out, not of the whole picture.
        bgcolor: what surrounds the object in its cut-out: a colour, or `original`.
    """

    tag: Tag | None = None
    include: Annotated[list[Include], Field(min_length=1, max_length=MAX_CLAUSES, fail_fast=True)] | None = (
        None
    )
    exclude: Annotated[list[Exclude], Field(max_length=MAX_CLAUSES, fail_fast=True)] | None = None
    prompt: Prompt | None = None
    position_rule: PositionRule = "released"
    threshold: Threshold = RELEASED_LIMITS.threshold
    counting_threshold: Threshold = RELEASED_LIMITS.counting_threshold
    max_objects: Annotated[int, Field(ge=1, le=100), WHOLE] = RELEASED_LIMITS.max_objects
    max_overlap: Annotated[float, Field(ge=0, le=1)] = RELEASED_LIMITS.max_overlap
    position_threshold: Annotated[float, Field(ge=0, le=1)] = POSITION_MARGIN
    crop: bool = True
    bgcolor: Annotated[str, Field(pattern=rf"^({ORIGINAL}|#([0-9a-fA-F]{{3}}){{1,2}})$")] = BACKGROUND

    @property
    def limits(self) -> Limits:
        """Which objects count."""
        return Limits(self.threshold, self.counting_threshold, self.max_objects, self.max_overlap)


# One object: the detector's confidence; left, top, right and bottom in pixels from the top left of the image;
# its colour by CLIP, null if no check depends on it.
GenEvalObject = TypedDict("GenEvalObject", {"class": str, "score": float, "box": Box, "color": str | None})


class GenEvalDetails(TypedDict):
    """
    Details of `geneval`.

    Attributes:
        correct: true if all checks passed.
        reason: one line for each failed check; empty if all passed.
        tag, include, exclude: the checks.
        width, height: of the picture.
        strict, reward: for trainers: true if the number of objects is exact, and the mean reward of all
            counts, colours and positions.
        boxes: all objects with a confidence above the lower threshold, the highest first.
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


async def geneval(item: Item, models: ModelCalls, options: GenEvalOptions) -> Score:
    """
    Return 1 if the image shows the objects, number, colours and position of its prompt, else 0.

    Everything but the models is as in the released code: its detector is Mask2Former with Swin-S of
    MMDetection, its CLIP OpenAI's ViT-L/14.

    Raises:
        NoTask: the prompt is not one of GenEval's, and the options have no metadata.
        UnknownClass: the detector cannot find an object.
        NoMasks: a colour matters, and the detector returns no masks.
    """
    task = task_for(item.prompt, options)
    limits, rule, margin = options.limits, options.position_rule, options.position_threshold
    found = await detected(item, models.detector, task, limits.least)
    cut = partial(Cutout, crop=options.crop, background=options.bgcolor)
    colours = await colours_of(item.image, coloured(task, by_class(found, task.tag, limits)), models, cut)
    found = [replace(each, colour=colours.get(each)) for each in found]
    counted = by_class(found, task.tag, limits)
    judged, given = verdict(task, counted, rule, margin), reward(task, counted, rule, margin)
    about_another = options.prompt is not None and options.prompt != item.prompt
    warnings = (OTHER_PROMPT_NOTE,) if about_another else ()
    shown = details(task, found, rule, judged, given, item.image.size)
    return Score(float(judged.correct), shown, warnings=warnings)


def task_for(prompt: str, options: GenEvalOptions) -> Task:
    """Return what an image should show.  Raises `NoTask`."""
    if options.include is None:
        if options.tag or options.exclude:
            raise NoTask("options.geneval has a tag or an exclude, and no include")
        return task_of(prompt)
    if options.tag is None:
        raise NoTask("options.geneval has an include, and no tag")
    task = Task(tag=options.tag, include=options.include, exclude=options.exclude or [])
    return check(task, "options.geneval")


async def detected(item: Item, detector: Detector, task: Task, threshold: float) -> list[DetectedObject]:
    """
    Return an image's objects above *threshold*, the highest confidence first, with GenEval's class names.

    An open-vocabulary detector gets all 80 classes, so that it does not take objects that the prompt does
    not name for those that it names.
    """
    names = names_of(detector.labels)
    if names:
        check_known(task.classes, [*names.values()], f"the detector {detector.name}")
    if not detector.masks and any(clause.color for clause in task.include):
        raise NoMasks(f"the detector {detector.name} draws no masks, and colours need an object's pixels")
    wanted = [*dict.fromkeys([*CLASSES, *task.classes])]
    detections = await detector.find(item.image, wanted, threshold)
    return [
        DetectedObject(names.get(each.label, each.label), each.score, each.box, seen=each)
        for each in detections.found
    ]


def details(
    task: Task,
    found: Sequence[DetectedObject],
    rule: PositionRule,
    judged: TaskCheck,
    given: ObjectReward,
    size: tuple[int, int],
) -> GenEvalDetails:
    """Return the details of a verdict."""
    clauses = task.model_dump(by_alias=True, exclude_none=True)
    boxes: Any = [
        {"class": each.name, "score": each.score, "box": each.box, "color": each.colour} for each in found
    ]
    return {
        "correct": judged.correct,
        "reason": judged.reason,
        "tag": task.tag,
        "include": clauses["include"],
        "exclude": clauses["exclude"],
        "position_rule": rule,
        "width": size[0],
        "height": size[1],
        "strict": given.strict,
        "reward": given.value,
        "boxes": boxes,
    }


def demand(prompt: str, options: GenEvalOptions) -> Mapping[str, Demand]:
    """Return a call of the detector, and one of CLIP per object with a colour; texts are soon cached."""
    try:
        clauses = task_for(prompt, options).include
    except NoTask:  # scoring this item raises it again
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
    trainers=TRAINER_FORMAT,
)
