"""Which frames of an item each metric scores, and what of them is looked at together."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from service.core.errors import Fault, ImageTooLarge, Invalid
from service.images.loader import ImageRef
from service.metrics.common.contract import MAX_FRAMES, REFERENCES, SOURCE, Metric, MetricOptions
from service.scoring.items import UnopenedItem


@dataclass(frozen=True, slots=True)
class FrameRef:
    """
    One frame of an item, or a picture beside its image.

    Attributes:
        picture: the file that it is in.
        number: which frame of an animation; None for a still picture.
        place: what an error calls it, such as "frame 3"; empty where the item has one picture.
    """

    picture: ImageRef
    number: int | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class MetricInput:
    """
    What a metric looks at in one go.

    Attributes:
        shots: what is scored as one picture: one frame, or a grid of several.
        references: the pictures that it is compared with.
        source: the picture before an edit.
    """

    shots: tuple[FrameRef, ...]
    references: tuple[FrameRef, ...] = ()
    source: FrameRef | None = None

    @property
    def beside(self) -> tuple[FrameRef, ...]:
        """All but what is scored."""
        return self.references if self.source is None else (*self.references, self.source)


@dataclass(frozen=True, slots=True)
class Frames:
    """
    The frames of an item that one metric scores.

    Attributes:
        given: how many there are.
        views: what is scored; or why that is not possible.
    """

    given: int
    views: Sequence[MetricInput] | ImageTooLarge


class ItemPlan:
    """
    An item, and what each metric looks at.

    Args:
        metrics: by name, those that are asked for.

    Attributes:
        options: by metric.
        uses: what each metric looks at beside the item's image.
        frames: by metric.
        work: the metrics, with their options, that look at each view; in order.
    """

    def __init__(
        self,
        item: UnopenedItem,
        options: Mapping[str, MetricOptions],
        metrics: Mapping[str, Metric],
    ) -> None:
        self.item, self.options = item, options
        self.uses = {name: metrics[name].uses_with(chosen) for name, chosen in options.items()}
        self.frames = {
            name: frames_of(item, name, chosen, self.uses[name]) for name, chosen in options.items()
        }
        self.work: dict[MetricInput, dict[str, MetricOptions]] = {}
        for name, frames in self.frames.items():
            for view in views_of(frames):
                self.work.setdefault(view, {})[name] = options[name]

    @property
    def moving(self) -> bool:
        """Whether some metric takes an animation for its frames."""
        return any(map(moving, self.options.values()))


def moving(options: MetricOptions) -> bool:
    """Whether an animation counts as its frames: where the request says what becomes of frames."""
    return not options.model_fields_set.isdisjoint(MetricOptions.model_fields)


def views_of(frames: Frames) -> Sequence[MetricInput]:
    """What is scored; nothing where that is not possible."""
    return () if isinstance(frames.views, ImageTooLarge) else frames.views


def frames_of(item: UnopenedItem, metric: str, options: MetricOptions, uses: Collection[str]) -> Frames:
    """The frames of *item* that *metric* scores with *options*, each with what else it *uses*."""
    shots = shots_of(item, moving(options))
    if options.samples is None and len(shots) > MAX_FRAMES:
        sample = f"options.{metric}.samples scores some of them"
        return Frames(len(shots), ImageTooLarge(f"{len(shots)} frames; at most {MAX_FRAMES}; {sample}"))
    chosen = sampled(shots, options.samples or len(shots))
    together = [tuple(chosen)] if options.frames == "grid" else [(shot,) for shot in chosen]
    references = references_of(item) if REFERENCES in uses else ()
    source = FrameRef(item.source, place=f"{item.place}/source") if item.source and SOURCE in uses else None
    return Frames(len(shots), [MetricInput(shots, references, source) for shots in together])


def check_used(asked: Sequence[ItemPlan]) -> None:
    """Raises `Invalid` where an item has pictures that no metric looks at; every such place is named."""
    faults = [
        Fault(
            f"{each.item.place}/{name}",
            "unused_picture",
            f"{', '.join(each.options)} with these options does not look at it",
        )
        for each in asked
        for name, given in ((REFERENCES, each.item.references), (SOURCE, each.item.source))
        if given and not any(name in uses for uses in each.uses.values())
    ]
    if faults:
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)


def references_of(item: UnopenedItem) -> tuple[FrameRef, ...]:
    """The pictures that an item is compared with; errors name each by its place in the request."""
    return tuple(
        FrameRef(picture, place=f"{item.place}/references/{number}")
        for number, picture in enumerate(item.references)
    )


def shots_of(item: UnopenedItem, moving: bool) -> list[FrameRef]:
    """All frames of an item: its pictures, in order, and each frame of those that move."""
    shots, several = list[FrameRef](), len(item.frames) > 1
    for index, picture in enumerate(item.frames):
        place = f"frame {index}" if several else ""
        if not moving or picture.film is None:
            shots.append(FrameRef(picture, place=place))
        elif picture.film.frames == 1:
            shots.append(FrameRef(picture.film, 0, place))
        else:
            inside = f"{place}, its frame" if several else "frame"
            shots += [FrameRef(picture.film, n, f"{inside} {n}") for n in range(picture.film.frames)]
    return shots


def sampled(shots: Sequence[FrameRef], count: int) -> list[FrameRef]:
    """
    The middle one of each of *count* equal parts; all where there are no more.

    For 10 frames and a count of 4 these are the frames 1, 3, 6 and 8.
    """
    count = min(count, len(shots))
    return [shots[(2 * part + 1) * len(shots) // (2 * count)] for part in range(count)]
