"""The frames of an item that each metric scores, and the images that it gets together."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from service.core.errors import Fault, ImageTooLarge, Invalid
from service.images.loader import ImageRef
from service.metrics.common.contract import MAX_FRAMES, REFERENCES, SOURCE, Metric, MetricOptions
from service.scoring.items import UnopenedItem


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


Inputs = Sequence[MetricInput] | ImageTooLarge
"""The inputs of one metric for an item; an error if the item has too many frames."""


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
        self.uses = {name: metrics[name].uses_with(chosen) for name, chosen in options.items()}
        self.inputs = {
            name: inputs_of(item, name, chosen, self.uses[name]) for name, chosen in options.items()
        }
        self.work: dict[MetricInput, dict[str, MetricOptions]] = {}
        for name, inputs in self.inputs.items():
            if not isinstance(inputs, ImageTooLarge):
                for input in inputs:
                    self.work.setdefault(input, {})[name] = options[name]

    @property
    def animated(self) -> bool:
        """True if some metric scores an animation frame by frame."""
        return any(map(animated, self.options.values()))


def animated(options: MetricOptions) -> bool:
    """Return True if an animation counts as its frames: the request sets `frames` or `samples`."""
    return not options.model_fields_set.isdisjoint(MetricOptions.model_fields)


def inputs_of(item: UnopenedItem, metric: str, options: MetricOptions, uses: Collection[str]) -> Inputs:
    """Return the inputs of *metric* for *item* with *options*, with the other images that it *uses*."""
    frames = frames_of(item, animated(options))
    given = len(frames)
    if options.samples is None and given > MAX_FRAMES:
        sample = f"options.{metric}.samples scores some of them"
        return ImageTooLarge(f"{given} frames; at most {MAX_FRAMES}; {sample}")
    chosen = sampled(frames, options.samples or given)
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
    """Return all frames of an item: its images in order, and each frame of those that are animated."""
    frames, several = list[FrameRef](), len(item.frames) > 1
    for index, image in enumerate(item.frames):
        place = f"frame {index}" if several else ""
        if not animated or image.film is None:
            frames.append(FrameRef(image, place=place))
        elif image.film.frames == 1:
            frames.append(FrameRef(image.film, 0, place))
        else:
            inside = f"{place}, its frame" if several else "frame"
            frames += [FrameRef(image.film, n, f"{inside} {n}") for n in range(image.film.frames)]
    return frames


def sampled(frames: Sequence[FrameRef], count: int) -> list[FrameRef]:
    """
    Return the middle frame of each of *count* equal parts; all frames if there are no more.

    For 10 frames and a count of 4 these are the frames 1, 3, 6 and 8.
    """
    count = min(count, len(frames))
    return [frames[(2 * part + 1) * len(frames) // (2 * count)] for part in range(count)]
