"""The plan of a request: its items, the images that each metric scores, how they open, and their work."""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from math import ceil

from models.images.frame_stack import FrameStack
from models.images.grid import Grid
from models.images.image import Image, ImageError
from service.core.errors import (
    BadImage,
    Fault,
    Invalid,
    ModelChanged,
    ScoregateError,
)
from service.core.fields import Orient
from service.images.frames import ENTIRE, ONE_FRAME, Films, Frame, TimeSpan
from service.images.loader import ImageLoader, ImageRef, again
from service.metrics.common.contract import REFERENCES, SOURCE, Item, Metric, MetricOptions, Score
from service.observability.notes import Code, Note
from service.scoring.catalog import MetricCatalog
from service.serving.admission import Demand, Place, Reservation
from service.serving.context import Context
from service.serving.handle import Handle

BATCHES_IN_FLIGHT = 3  # batches of the slowest model: one runs, one waits, and one is being prepared
MIN_FRAMES_IN_FLIGHT = 2  # one frame is decoded while the model works on the other
FRAMES_WITHOUT_MODEL = 32  # frames, if no model is used


@dataclass(frozen=True, slots=True)
class UnopenedItem:
    """
    A prompt with its images.

    Attributes:
        prompt: empty if it has none, which only metrics that read no prompt accept.
        frames: the images that are scored against the prompt, one or several.
        metrics: those that score it, in place of the request's.
        required: those of its metrics without which the caller cannot use it.
        options: by metric; a metric that is missing uses its defaults.
        id: the caller's name for it, echoed.
        place: a JSON pointer into the request, for errors.
        references: images that it is compared with.
        source: the image before an edit.
        clip: the part of its videos and animations that is scored.
        orient: whether its pixels are turned by EXIF; None for the settings' value.
    """

    prompt: str
    frames: Sequence[ImageRef]
    options: Mapping[str, MetricOptions] = field(default_factory=dict)
    id: str | None = None
    place: str = ""
    references: Sequence[ImageRef] = ()
    source: ImageRef | None = None
    clip: TimeSpan = ENTIRE
    orient: Orient | None = None
    metrics: Sequence[str] = ()
    required: Sequence[str] = ()


@dataclass(eq=False, slots=True)
class Input:
    """
    Images of an item that some of its metrics score together.

    Attributes:
        index: of the item in the request.
        frames: scored as one image: one frame, or a grid of several; or those of a film.
        given: the number of frames that the item has.
        references, source: the other images that these metrics use.
        metrics: the options of each of these metrics, by name.
        results: of each of them, once they are scored.
        together: these metrics get all frames at once, not as a grid.
    """

    item: UnopenedItem
    index: int
    frames: tuple[Frame, ...]
    given: int
    references: Sequence[ImageRef]
    source: ImageRef | None
    metrics: dict[str, MetricOptions] = field(default_factory=dict)
    results: Mapping[str, Score | ScoregateError] = field(default_factory=dict)
    together: bool = False

    def file(self, frame: Frame) -> ImageRef:
        """Return the file of *frame*; of one that counts as its frames, the frame stack."""
        image = self.item.frames[frame.file]
        return image if frame.number is None or image.film is None else image.film

    def place(self, frame: Frame) -> str:
        """Return the name of *frame* in errors, such as "frame 3"; empty if the item has one image."""
        place = f"frame {frame.file}" if len(self.item.frames) > 1 else ""
        if frame.number is None or self.file(frame).times is ONE_FRAME:
            return place
        return f"{place}, its frame {frame.number}" if place else f"frame {frame.number}"

    @property
    def others(self) -> list[tuple[ImageRef, str]]:
        """References and source, each with its place in the request."""
        place = self.item.place
        found = [(each, f"{place}/references/{number}") for number, each in enumerate(self.references)]
        return found if self.source is None else [*found, (self.source, f"{place}/source")]


Inputs = Sequence[Input] | BadImage
"""The inputs of one metric for an item; an error if the item has too many frames, or none."""


class Plan:
    """
    The items of a request with what each of its metrics scores, and the work that this means.

    Args:
        names: of the metrics that score the items without metrics of their own.
        lane: of its calls.

    Attributes:
        handles: of the models that the metrics may use, by name.
        by_metric: for each item, in order, the inputs of each metric.
        inputs: all distinct inputs, in order.
        films: the images that count as their frames, and the frames of them that are scored.
        work: on the models.

    Raises:
        UnknownMetric: a metric is not served.
        Invalid: an item has images that no metric uses; every such place is named.
    """

    def __init__(
        self,
        items: Sequence[UnopenedItem],
        names: Sequence[str],
        catalog: MetricCatalog,
        lane: str,
    ) -> None:
        every = dict.fromkeys(chain.from_iterable(item.metrics or names for item in items))
        self.items, self.handles = items, catalog.handles([*every])
        self.by_metric: list[dict[str, Inputs]] = []
        self.inputs: list[Input] = []
        self.films = Films()
        demands, unused = dict[Handle, Demand](), list[Fault]()
        for index, item in enumerate(items):
            of_item, distinct, used = dict[str, Inputs](), dict[object, Input](), set[str]()
            scored = item.metrics or names
            for name in scored:
                metric, options = catalog.known[name], item.options.get(name) or catalog.defaults[name]
                uses = metric.uses_of(options)
                used.update(uses)
                inputs = of_item[name] = self._inputs(index, name, options, uses, distinct)
                if not isinstance(inputs, BadImage):
                    for handle, demand in demands_of(metric, options, item.prompt, catalog):
                        more = demand * len(inputs) if len(inputs) > 1 else demand
                        demands[handle] = demands[handle] + more if handle in demands else more
            self.by_metric.append(of_item)
            self.inputs += distinct.values()
            unused += [
                Fault(
                    f"{item.place}/{name}",
                    "unused_picture",
                    f"{', '.join(scored)} with these options does not use it",
                )
                for name, given in ((REFERENCES, item.references), (SOURCE, item.source))
                if given and name not in used
            ]
        if unused:
            raise Invalid(f"{unused[0].pointer}: {unused[0].detail}", faults=unused)
        self.work = Workload(demands, len(self.inputs), lane)

    def _inputs(
        self,
        index: int,
        name: str,
        options: MetricOptions,
        uses: Collection[str],
        distinct: dict[object, Input],
    ) -> Inputs:
        """Return the inputs of the metric *name* for an item; it may share them with others in *distinct*."""
        item, whole = self.items[index], options.whole
        try:
            frames, given = self.films.scored(
                item.frames,
                item.clip,
                options.samples,
                f"options.{name}.samples",
                whole=whole,
                chosen=not options.model_fields_set.isdisjoint(MetricOptions.model_fields),
            )
        except BadImage as error:
            return again(error)
        references = item.references if REFERENCES in uses else ()
        source = item.source if SOURCE in uses else None
        inputs = []
        one = whole or options.frames == "grid"
        for together in [tuple(frames)] if one else [(frame,) for frame in frames]:
            key = (together, given, whole, bool(references), bool(source))
            input = distinct.get(key)
            if input is None:
                input = distinct[key] = Input(
                    item, index, together, given, references, source, together=whole
                )
            input.metrics[name] = options
            inputs.append(input)
        return inputs

    def is_scored(self, index: int) -> bool:
        """Return True if each metric of an item has its result from the same models as all others."""
        inputs = chain.from_iterable(
            each for each in self.by_metric[index].values() if not isinstance(each, BadImage)
        )
        return all(
            input.results and not any(isinstance(each, ModelChanged) for each in input.results.values())
            for input in inputs
        )


def demands_of(
    metric: Metric, options: MetricOptions, prompt: str, catalog: MetricCatalog
) -> Iterator[tuple[Handle, Demand]]:
    """Yield the models that *metric* or its parts need for an image, each with the demand on it."""
    for part, chosen in metric.asks(options).items():
        for role, demand in catalog.known[part].demand(prompt, chosen).items():
            if demand.calls and (handle := catalog.models[part].get(role)):
                yield handle, demand


@asynccontextmanager
async def opened(
    input: Input, loader: ImageLoader, context: Context
) -> AsyncIterator[tuple[Item, list[Note]]]:
    """
    Return the images of *input* with its prompt, and notes about content that they do not show.

    The memory of all pixels is reserved in one step while the context is open: two requests that each wait
    for memory that the other holds would deadlock.

    Raises a subclass of `BadImage` that names the frame, reference or source.
    """
    prompt = input.item.prompt
    if len(input.frames) == 1 and not input.references and input.source is None:
        [frame] = input.frames
        ref = input.file(frame)
        async with loader.open(ref, context) as image:
            await loader.look_at_alpha({ref: image}, context)
            yield Item(shown(frame, image), prompt), [*notes(input, {ref: image})]
        return
    others, files = input.others, [input.file(frame) for frame in input.frames]
    named = [*zip(files, map(input.place, input.frames), strict=True), *others]
    async with AsyncExitStack() as stack:
        read = await loader.read_together(dict(reversed(named)), stack, context)
        # Copies, since a grid releases what it has copied, and everything else is released in the end.
        held = [read[ref] for ref in files] if input.together else copies(files, read)
        frames = [*map(shown, input.frames, held)]
        film = tuple(frames) if input.together else ()
        image = frames[0] if film or len(frames) == 1 else Grid(frames, [*map(input.place, input.frames)])
        beside = copies([ref for ref, _ in others], read)
        pixels = dict.fromkeys([image.file, *(frame.file for frame in film), *beside])
        async with loader.pixels.reserve([*pixels], context):
            shown_in = [image] * len(files) if isinstance(image, Grid) else held
            decoded = zip([*files, *(ref for ref, _ in others)], [*shown_in, *beside], strict=True)
            await loader.look_at_alpha(dict(decoded), context)
            references = tuple(beside[: len(input.references)])
            source = beside[-1] if input.source else None
            yield Item(image, prompt, references, source, frames=film), [*notes(input, read)]


def copies(refs: Sequence[ImageRef], read: Mapping[ImageRef, Image]) -> list[Image]:
    """Return a new image for each of *refs*; the same file has the same one."""
    made = {ref: type(read[ref]).over(read[ref]) for ref in refs}
    return [made[ref] for ref in refs]


def shown(frame: Frame, image: Image) -> Image:
    """Return *frame* of its file *image*.  Raises `ImageError` if it has fewer."""
    return image if frame.number is None or not isinstance(image, FrameStack) else image.frame(frame.number)


def notes(input: Input, read: Mapping[ImageRef, Image]) -> Iterator[Note]:
    """Yield a note for each content of a file that is not scored, such as more frames."""
    named = [("the image", input.file(frame), frame.number is None) for frame in input.frames]
    named += [("a reference", ref, True) for ref in input.references]
    named += [("the source", input.source, True)] if input.source else []
    for name, ref, still in named:
        unseen = read[ref].unseen
        if unseen.orientation != 1:
            turned = f"was not turned by its EXIF orientation, {unseen.orientation}"
            yield Note(Code.IMAGE_ROTATED_BY_EXIF, f'{name} {turned}; orient: "exif" turns it')
        if unseen.more_frames and still:
            yield Note(Code.FRAMES_IGNORED, f"{name} has several frames; only the first was scored")
        if unseen.alpha:
            text = f"{name} has transparency, which is ignored: the colours behind it were scored"
            yield Note(Code.ALPHA_IGNORED, text)
        if unseen.grey16:
            text = f"{name} is grey of more than 8 bits: values above 255 were clipped to white"
            yield Note(Code.GREY16_CLIPPED, text)
        if unseen.profile:
            text = f"{name} has a colour profile other than sRGB, which is ignored: its numbers were scored"
            yield Note(Code.PROFILE_IGNORED, text)


def broken(input: Input, item: Item) -> str:
    """Return the place of one of several images that cannot be decoded, if any.  Call it on a CPU thread."""
    images = [*item.frames, *item.references, *([item.source] if item.source else [])]
    places = [*map(input.place, input.frames if item.frames else ()), *(place for _, place in input.others)]
    for place, image in zip(places, images, strict=True):
        try:
            image.rgb.load()
        except ImageError:
            return place
    return ""


@dataclass(eq=False, slots=True)
class Workload:
    """
    The demands of one request.

    Attributes:
        demands: for each model that the request needs.
        frames: the number of inputs; a grid counts as one.
        lane: of its calls.
    """

    demands: Mapping[Handle, Demand]
    frames: int
    lane: str
    _reservations: Mapping[str, Reservation] = field(default_factory=dict)

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Reserve space in the lanes for work that was admitted and has not begun, while it is scored."""
        self._reservations = {
            handle.name: handle.backend.reserve(self.lane, demand, self.frames)
            for handle, demand in self.demands.items()
        }
        try:
            yield
        finally:
            for reservation in self._reservations.values():
                reservation.close()

    def admit(self, context: Context) -> None:
        """Raise `LaneFull`, `Overloaded` or `TooLarge` if a model cannot take the request."""
        for handle, demand in self.demands.items():
            handle.admit(context, demand)

    async def wait_for_room(self, context: Context, place: Place) -> None:
        """Wait until each model has room, see `Handle.wait_for_room`."""
        for handle, demand in self.demands.items():
            await handle.wait_for_room(context, demand, place)

    @contextmanager
    def frame(self) -> Iterator[Callable[[str], None]]:
        """Yield what releases a frame's reservation on a model, whose queue counts its calls by then."""
        left = dict(self._reservations)

        def queued(name: str) -> None:
            if reservation := left.pop(name, None):
                reservation.begin_part()

        try:
            yield queued
        finally:
            for name in tuple(left):
                queued(name)

    def at_once(self) -> int:
        """
        Return the number of frames to score concurrently.

        Enough to keep the batches of the slowest model full, by its recent batches.  More would only hold
        memory and delay others.
        """
        if not self.demands:
            return FRAMES_WITHOUT_MODEL
        slowest = max(handle.backend.estimate(demand) for handle, demand in self.demands.items())
        return max(MIN_FRAMES_IN_FLIGHT, ceil(BATCHES_IN_FLIGHT * self.frames / slowest.batches))
