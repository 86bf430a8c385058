"""Translation of wire types into the engine's inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from service.core.errors import Fault, Invalid, UnknownMetric
from service.core.fields import Orient
from service.images.frames import TimeSpan
from service.images.loader import Base64, ImageRef, Source, Url
from service.metrics.common.contract import Metric, MetricOptions
from service.scoring.comparison import ComparedGroup
from service.scoring.engine import Engine
from service.scoring.plan import UnopenedItem
from service.scoring.ranking import Cascade, Rule
from service.scoring.win_rates import Schedule
from service.web.problems import MAX_FAULTS
from service.web.wire.comparison import CompareRequest, WireSchedule
from service.web.wire.requests import (
    ImageData,
    ImagePart,
    ImageUrl,
    RankRequest,
    ScoreRequest,
    WireImage,
    WireItem,
    options_of,
    sent,
)

FormParts = Mapping[str, bytes]
SCORE_ITEM_FIELDS = ("id", "prompt", "image", "references", "source")  # other fields are the request's own
OneImage = Base64 | ImageData | ImagePart | ImageUrl


def items_of(
    request: ScoreRequest,
    shared: Mapping[str, MetricOptions],
    parts: FormParts,
    metrics: Mapping[str, Metric],
) -> list[UnopenedItem]:
    """
    Return the items of a request, in order.

    Items with the same file part or URL share its picture, unless they orient it differently.

    Args:
        shared: the options of the request by metric, those of items too, for items without options of their
            own.
        metrics: the known ones.

    Raises:
        Invalid: an image names a missing file part, a required metric is none of the item's, or there is no
            prompt and a metric reads it; every such place is named.
    """
    image = "" if request.images is not None else "/image"
    images, items, faults = RequestImages(parts), [], list[Fault]()
    for place, item in all_items(request).items():
        orient = item.orient or request.orient
        frames = images.of(item.image, f"{place}{image}", orient)
        references = images.of(item.references, f"{place}/references", orient) if item.references else []
        source = images.of(item.source, f"{place}/source", orient) if item.source is not None else [None]
        own = item.metrics or ()
        options = shared if item.options is None else options_of(item.options, own or request.metrics)
        clip = clip_of(item, request)
        required = item.required or request.required or ()
        if required:
            faults += not_scored(item, request, place)
        if item.prompt is None:
            faults += without_prompt(item, request, place, metrics)
        items.append(
            UnopenedItem(
                item.prompt or "",
                frames,
                options,
                item.id,
                place,
                references,
                source[0],
                clip,
                orient,
                own,
                required,
            )
        )
    if faults := [*images.missing, *faults]:
        distinct = [*dict.fromkeys(faults)]  # many images lack one prompt
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=distinct[:MAX_FAULTS])
    return items


def all_items(request: ScoreRequest) -> Mapping[str, WireItem]:
    """Return the items of a request of any form, by their JSON pointer."""
    if request.items is not None:
        return {f"/items/{index}": item for index, item in enumerate(request.items)}
    if request.image is not None:
        return {"": WireItem.model_construct(**{name: getattr(request, name) for name in SCORE_ITEM_FIELDS})}
    return {
        f"/images/{index}": WireItem.model_construct(prompt=request.prompt, image=image)
        for index, image in enumerate(request.images or ())
    }


def without_prompt(
    item: WireItem, request: ScoreRequest, place: str, metrics: Mapping[str, Metric]
) -> list[Fault]:
    """Return the fault of *item*, at *place* and without a prompt, if one of its metrics reads the prompt."""
    names = item.metrics or request.metrics
    reading = [name for name in names if name in metrics and metrics[name].reads_prompt]
    at = "" if request.images is not None else place  # one prompt is that of all images
    return [Fault(f"{at}/prompt", "missing", f"is needed by {', '.join(reading)}")] if reading else []


def not_scored(item: WireItem, request: ScoreRequest, place: str) -> list[Fault]:
    """Return a fault for each required metric that does not score *item*, at *place*."""
    metrics, at = item.metrics or request.metrics, place if item.required else ""
    detail = f"does not score {place or 'the item'}; its metrics are {', '.join(metrics)}"
    return [
        Fault(f"{at}/required/{number}", "not_scored", f"{name} {detail}")
        for number, name in enumerate(item.required or request.required or ())
        if name not in metrics
    ]


def clip_of(item: WireItem, request: ScoreRequest) -> TimeSpan:
    """Return the part of an item's videos that is scored; its own fields override those of the request."""
    return TimeSpan(
        request.start if item.start is None else item.start,
        request.end if item.end is None else item.end,
        request.fps if item.fps is None else item.fps,
    )


@dataclass(eq=False, slots=True)
class RequestImages:
    """
    The pictures of one request; equal URLs and equal names of file parts share theirs.

    Attributes:
        missing: places that name a missing file part.
    """

    _parts: FormParts
    _shared: dict[tuple[ImagePart | ImageUrl, Orient | None], ImageRef] = field(default_factory=dict)
    missing: list[Fault] = field(default_factory=list)

    def of(
        self, image: WireImage | Sequence[OneImage], place: str, orient: Orient | None = None
    ) -> list[ImageRef]:
        """Return the pictures of one image or several at *place*; that of a missing part has no bytes."""
        if isinstance(image, Base64):
            return [ImageRef(image, orient=orient)]
        if isinstance(image, ImageData):
            return [ImageRef(image.data, orient=orient)]
        if isinstance(image, Sequence):
            found = (self.of(each, f"{place}/{number}", orient) for number, each in enumerate(image))
            return [*chain.from_iterable(found)]
        if isinstance(image, ImageUrl):
            source: Source = Url(image.url)
        else:
            source = self._parts.get(image.part, b"")
            if image.part not in self._parts:
                detail = "there is no file part of that name"
                self.missing.append(Fault(f"{place}/part", "missing_part", detail))
        return [self._shared.setdefault((image, orient), ImageRef(source, orient=orient))]


def rule_of(request: RankRequest, metrics: Mapping[str, Metric]) -> Rule:
    """Return the ranking rule of a request."""
    cascade = Cascade(request.cascade.metric, request.cascade.keep) if request.cascade else None
    return Rule(
        request.metric,
        cascade,
        request.top_k,
        request.threshold,
        request.on_error,
        request.on_deadline,
        lower=[name for name in request.metrics.values() if metrics[name].lower_is_better],
    )


def group_of(request: CompareRequest, parts: FormParts, metrics: Mapping[str, Metric]) -> ComparedGroup:
    """
    Return the pictures of a request, and how to compare them.

    Raises:
        Invalid: as `items_of`, or two rubrics are named.
    """
    name = request.named
    options = options_of(request.options, [name])
    if request.rubric is not None:
        given = sent(options[name])
        if "rubric" in given:
            detail = f"give either rubric or options.{name}.rubric"
            raise Invalid(f"/rubric: {detail}", faults=[Fault("/rubric", "invalid", detail)])
        options = {name: type(options[name]).model_validate({**given, "rubric": request.rubric})}
    items = items_of(request.to_score(), options, parts, metrics)
    if request.source is not None:
        images = RequestImages(parts)
        [source] = images.of(request.source, "/source", request.orient)
        if faults := images.missing:
            raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)
        items = [replace(item, source=source) for item in items]
    schedule = Schedule()
    if isinstance(request.schedule, WireSchedule):
        schedule = Schedule(request.schedule.kind, request.schedule.pairs_per_image)
    return ComparedGroup(items[0].prompt, items, name, options[name], schedule, request.noise)


def check_served(metrics: Mapping[str, str], engine: Engine) -> None:
    """Check that *metrics*, by their place in the request, are served.  Raises `UnknownMetric`."""
    faults = [
        unserved(place, name, engine) for place, name in metrics.items() if not engine.catalog.serves(name)
    ]
    if faults:
        raise UnknownMetric(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)


def unserved(place: str, name: str, engine: Engine) -> Fault:
    """Return the fault of a metric that is not served; an unknown name may mean any known one."""
    reason = engine.catalog.absent(name)
    known = [*engine.catalog.defaults]
    unknown = Fault.unknown(place, "unknown_metric", reason, name, known if name not in known else [])
    return replace(unknown, valid=[*engine.catalog.metrics])
