"""A request's wire types as what the engine works on."""

from collections.abc import Iterator, Mapping, Sequence

from service.engine import Engine
from service.errors import Fault, Invalid, UnknownMetric
from service.http.images import ImageData, ImagePart, ImageUrl, WireImage
from service.http.problems import MAX_FAULTS
from service.http.requests import Options, RankRequest, ScoreRequest
from service.items import Picture, UnopenedItem
from service.metrics.contract import MetricOptions
from service.ranking import Cascade, Rule
from service.sources import Base64, Encoded, Url

Parts = Mapping[str, bytes]


def items_of(request: ScoreRequest, parts: Parts) -> list[UnopenedItem]:
    """
    The items of a request, in order.

    Items that name the same file part or the same URL share its picture.

    Raises:
        Invalid: an image names a file part that isn't there; every such place is named.
    """
    form = "/items/{}" if request.items is not None else "/images/{}"
    pictures = {name: Picture(Encoded(data)) for name, data in parts.items()}
    fetched = dict[str, Picture]()
    shared = options_of(request.options, request.metrics)
    items, faults = [], []
    for index, item in enumerate(request.all_items()):
        place, frames = form.format(index), []
        for suffix, image in frames_of(item.image):
            if isinstance(image, ImagePart) and image.part not in pictures:
                at = f"{place}/image{suffix}" if request.items is not None else f"{place}{suffix}"
                faults.append(Fault(f"{at}/part", "missing_part", "there is no file part of that name"))
                continue
            frames.append(
                pictures[image.part] if isinstance(image, ImagePart) else picture_of(image, fetched)
            )
        options = shared if item.options is None else options_of(item.options, request.metrics)
        items.append(UnopenedItem(item.prompt, frames, options, item.id, place))
    if faults:
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults[:MAX_FAULTS])
    return items


def frames_of(image: WireImage) -> Iterator[tuple[str, str | ImageData | ImagePart | ImageUrl]]:
    """An item's pictures, each with its place below the item's image."""
    if isinstance(image, list):
        yield from ((f"/{frame}", picture) for frame, picture in enumerate(image))
    else:
        yield "", image


def picture_of(image: str | ImageData | ImageUrl, fetched: dict[str, Picture]) -> Picture:
    """A picture that is not a file part; equal URLs share theirs, by way of *fetched*."""
    if isinstance(image, ImageUrl):
        return fetched.setdefault(image.url, Picture(Url(image.url)))
    return Picture(Base64(image if isinstance(image, str) else image.data))


def options_of(options: Options, metrics: Sequence[str]) -> dict[str, MetricOptions]:
    """The options of each metric that is asked for."""
    return {name: getattr(options, name) for name in metrics if name in type(options).model_fields}


def rule_of(request: RankRequest) -> Rule:
    """How a request wants its pictures ranked."""
    cascade = Cascade(request.cascade.metric, request.cascade.keep) if request.cascade else None
    return Rule(
        request.metric, cascade, request.top_k, request.threshold, request.on_error, request.on_deadline
    )


def check_served(metrics: Mapping[str, str], engine: Engine) -> None:
    """Raises `UnknownMetric`, with the place in the request of each of *metrics* that is not served."""
    faults = [
        Fault(place, "unknown_metric", reason)
        for place, name in metrics.items()
        if (reason := engine.offer.absent(name))
    ]
    if faults:
        raise UnknownMetric(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)
