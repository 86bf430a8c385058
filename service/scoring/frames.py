"""The frames of an item that each metric scores, and the images that it gets together."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from service.core.errors import BadImage, Fault, ImageTooLarge, Invalid, NoFrames
from service.images.loader import ONE_FRAME, ImageRef
from service.metrics.common.contract import MAX_FRAMES, REFERENCES, SOURCE, Metric, MetricOptions
from service.scoring.clip import WHOLE
from service.scoring.items import UnopenedItem

VIDEO_FRAMES = 16  # of a video, if the request sets neither a rate nor a number


@dataclass(frozen=True, slots=True)
class FrameRef:
    """
    One frame of an item, a reference, or its source.

    Attributes:
        image: the file that it is in.
        number: of the frame in an animation; None for a still image.
        place: its name in errors, such as "frame 3"; empty if the item has one image.
    """

    image: ImageRef
    number: int | None = None
    place: str = ""

    @property
    def of_film(self) -> dict[str, float]:
        """The number and the time of a frame, for details; empty for a still image."""
        return {} if self.number is None else {"frame": self.number, "time_s": self.image.times[self.number]}


@dataclass(frozen=True, slots=True)
class MetricInput:
    """
    The images of one call of a metric.

    Attributes:
        frames: scored as one image: one frame, or a grid of several.
        given: the number of frames that the item has.
        references: images that it is compared with.
        source: the image before an edit.
    """

    frames: tuple[FrameRef, ...]
    given: int
    references: tuple[FrameRef, ...] = ()
    source: FrameRef | None = None

    @property
    def others(self) -> tuple[FrameRef, ...]:
        """References and source."""
        return self.references if self.source is None else (*self.references, self.source)


Inputs = Sequence[MetricInput] | BadImage
"""The inputs of one metric for an item; an error if the item has too many frames, or none."""


class ItemPlan:
    """
    An item with the inputs of each metric.

    Args:
        options: of each metric to be scored, by name.
        metrics: declarations by name.

    Attributes:
        uses: of each metric, which of references and source it gets.
        inputs: by metric.
        work: options by metric, for each distinct input, in order.
    """

    def __init__(
        self,
        item: UnopenedItem,
        options: Mapping[str, MetricOptions],
        metrics: Mapping[str, Metric],
    ) -> None:
        self.item, self.options = item, options
        self.uses = {name: metrics[name].uses_of(chosen) for name, chosen in options.items()}
        self.inputs = {
            name: inputs_of(item, name, chosen, self.uses[name]) for name, chosen in options.items()
        }
        self.work: dict[MetricInput, dict[str, MetricOptions]] = {}
        for name, inputs in self.inputs.items():
            if not isinstance(inputs, BadImage):
                for input in inputs:
                    self.work.setdefault(input, {})[name] = options[name]

    @property
    def films(self) -> list[ImageRef]:
        """The images of which some metric scores each frame, if they have several."""
        every = any(animated(self.item, options) for options in self.options.values())
        return [image for image in self.item.frames if every or image.video]


def keep_used(plans: Sequence[ItemPlan]) -> None:
    """Decode of each film only the frames that some metric scores."""
    used: dict[ImageRef, set[int]] = {}
    for plan in plans:
        for input in plan.work:
            for frame in input.frames:
                if frame.number is not None:
                    used.setdefault(frame.image, set()).add(frame.number)
    for film, numbers in used.items():
        film.keep(numbers)


def animated(item: UnopenedItem, options: MetricOptions) -> bool:
    """Return True if an animation counts as its frames: the request sets how they are taken or folded."""
    return item.clip != WHOLE or not options.model_fields_set.isdisjoint(MetricOptions.model_fields)


def inputs_of(item: UnopenedItem, metric: str, options: MetricOptions, uses: Collection[str]) -> Inputs:
    """Return the inputs of *metric* for *item* with *options*, with the other images that it *uses*."""
    every = animated(item, options)
    given = sum(len(film.times) - 1 if film else 1 for film in (film_of(each, every) for each in item.frames))
    frames = frames_of(item, every)
    samples = options.samples
    if samples is None and item.clip.fps is None and any(image.video for image in item.frames):
        samples = VIDEO_FRAMES
    if not frames:
        lasts = max(film.times[-1] for each in item.frames if (film := film_of(each, every)))
        return NoFrames(f"no frame is between start and end; it lasts {lasts:g} s")
    if samples is None and len(frames) > MAX_FRAMES:
        sample = f"options.{metric}.samples scores some of them"
        return ImageTooLarge(f"{len(frames)} frames; at most {MAX_FRAMES}; {sample}")
    chosen = sampled(frames, samples or len(frames))
    together = [tuple(chosen)] if options.frames == "grid" else [(frame,) for frame in chosen]
    references = references_of(item) if REFERENCES in uses else ()
    source = FrameRef(item.source, place=f"{item.place}/source") if item.source and SOURCE in uses else None
    return [MetricInput(frames, given, references, source) for frames in together]


def check_used(plans: Sequence[ItemPlan]) -> None:
    """Raise `Invalid` if an item has images that no metric uses; every such place is named."""
    faults = [
        Fault(
            f"{plan.item.place}/{name}",
            "unused_picture",
            f"{', '.join(plan.options)} with these options does not use it",
        )
        for plan in plans
        for name, given in ((REFERENCES, plan.item.references), (SOURCE, plan.item.source))
        if given and not any(name in uses for uses in plan.uses.values())
    ]
    if faults:
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)


def references_of(item: UnopenedItem) -> tuple[FrameRef, ...]:
    """Return the references of an item; errors name each by its place in the request."""
    return tuple(
        FrameRef(image, place=f"{item.place}/references/{number}")
        for number, image in enumerate(item.references)
    )


def frames_of(item: UnopenedItem, animated: bool) -> list[FrameRef]:
    """Return all frames of an item's clip: its images in order, and each frame of those that are animated."""
    frames, several = list[FrameRef](), len(item.frames) > 1
    for index, image in enumerate(item.frames):
        place, film = f"frame {index}" if several else "", film_of(image, animated)
        if film is None:
            frames.append(FrameRef(image, place=place))
        elif film.times is ONE_FRAME:
            frames.append(FrameRef(film, 0, place))
        else:
            inside = f"{place}, its frame" if several else "frame"
            frames += [FrameRef(film, n, f"{inside} {n}") for n in item.clip.frames(film.times)]
    return frames


def film_of(image: ImageRef, animated: bool) -> ImageRef | None:
    """Return the frame stack of an image that counts as its frames; a video always does."""
    return image.film if animated or image.video else None


def sampled(frames: Sequence[FrameRef], count: int) -> list[FrameRef]:
    """
    Return the middle frame of each of *count* equal parts; all frames if there are no more.

    For 10 frames and a count of 4 these are the frames 1, 3, 6 and 8.
    """
    count = min(count, len(frames))
    return [frames[(2 * part + 1) * len(frames) // (2 * count)] for part in range(count)]
