"""Translation of wire types into the engine's inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.core.errors import Fault, Invalid, UnknownMetric
from service.core.fields import Orient
from service.images.loader import ImageRef
from service.images.sources import Base64, Encoded, Source, Url
from service.metrics.common.contract import Metric, MetricOptions
from service.scoring.engine import Engine
from service.scoring.plan import Clip, UnopenedItem
from service.scoring.ranking import Cascade, Rule
from service.web.images import ImageData, ImagePart, ImageUrl, WireImage
from service.web.problems import MAX_FAULTS
from service.web.wire.clip import Clipped
from service.web.wire.requests import Options, RankRequest, ScoreRequest, WireItem

Parts = Mapping[str, bytes]
OnePicture = Base64 | ImageData | ImagePart | ImageUrl


def items_of(request: ScoreRequest, parts: Parts) -> list[UnopenedItem]:
    """
    Return the items of a request, in order.

    Items with the same file part or URL share its picture, unless they orient it differently.

    Raises:
        Invalid: an image names a missing file part; every such place is named.
    """
    image = "" if request.images is not None else "/image"
    shared = options_of(request.options, request.metrics)
    pictures, items = Pictures(parts), []
    for place, item in request.all_items().items():
        orient = item.orient or request.orient
        frames = pictures.of(item.image, f"{place}{image}", orient)
        references = pictures.of(item.references or [], f"{place}/references", orient)
        source = pictures.of([] if item.source is None else item.source, f"{place}/source", orient)
        options = shared if item.options is None else options_of(item.options, request.metrics)
        first = next(iter(source), None)
        clip = clip_of(item, request)
        items.append(UnopenedItem(item.prompt, frames, options, item.id, place, references, first, clip))
    if faults := pictures.missing:
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults[:MAX_FAULTS])
    return items


def clip_of(item: WireItem, request: ScoreRequest) -> Clip:
    """Return the part of an item's videos that is scored; its own fields override those of the request."""
    pairs = ((getattr(item, name), getattr(request, name)) for name in Clipped.model_fields)
    return Clip(*(shared if own is None else own for own, shared in pairs))


class Pictures:
    """
    The pictures of one request; equal URLs and equal names of file *parts* share theirs.

    Attributes:
        missing: places that name a missing file part.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._shared = dict[tuple[ImagePart | ImageUrl, Orient | None], ImageRef]()
        self.missing: list[Fault] = []

    def of(
        self, image: WireImage | Sequence[OnePicture], place: str, orient: Orient | None = None
    ) -> list[ImageRef]:
        """Return the pictures of one image or several at *place*, without missing ones."""
        if isinstance(image, Sequence):
            listed = [(f"{place}/{number}", each) for number, each in enumerate(image)]
        else:
            listed = [(place, image)]
        found = [self._one(each, at, orient) for at, each in listed]
        return [picture for picture in found if picture]

    def _one(self, image: OnePicture, place: str, orient: Orient | None) -> ImageRef | None:
        if isinstance(image, ImagePart) and image.part not in self._parts:
            detail = "there is no file part of that name"
            self.missing.append(Fault(f"{place}/part", "missing_part", detail))
            return None
        if isinstance(image, ImagePart | ImageUrl):
            return self._shared.setdefault((image, orient), ImageRef(self._source(image), orient=orient))
        return ImageRef(self._source(image), orient=orient)

    def _source(self, image: OnePicture) -> Source:
        match image:
            case ImagePart():
                return Encoded(self._parts[image.part])
            case ImageUrl():
                return Url(image.url)
            case ImageData():
                return image.data
            case _:
                return image


def options_of(options: Options, metrics: Sequence[str]) -> dict[str, MetricOptions]:
    """Return the options of each requested metric."""
    return {name: getattr(options, name) for name in metrics if name in type(options).model_fields}


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


def check_served(metrics: Mapping[str, str], engine: Engine) -> None:
    """Check that *metrics*, by their place in the request, are served.  Raises `UnknownMetric`."""
    faults = [
        unserved(place, name, reason, engine)
        for place, name in metrics.items()
        if (reason := engine.catalog.absent(name))
    ]
    if faults:
        raise UnknownMetric(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)


def unserved(place: str, name: str, reason: str, engine: Engine) -> Fault:
    """Return the fault of a metric that is not served; an unknown name may mean any known one."""
    known = [*engine.catalog.defaults]
    unknown = Fault.unknown(place, "unknown_metric", reason, name, known if name not in known else [])
    return replace(unknown, valid=[*engine.catalog.metrics])
