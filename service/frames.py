"""Which frames of an item each metric scores, and what of them is looked at as one picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.errors import ImageTooLarge
from service.items import Picture, UnopenedItem
from service.metrics.contract import MAX_FRAMES, MetricOptions


@dataclass(frozen=True, slots=True)
class Shot:
    """
    One frame of an item.

    Attributes:
        picture: the file that it is in.
        number: which frame of an animation; None for a still picture.
        place: what an error calls it, such as "frame 3"; empty where the item has one picture.
    """

    picture: Picture
    number: int | None = None
    place: str = ""


View = tuple[Shot, ...]  # what is looked at as one picture: one frame, or a grid of several


@dataclass(frozen=True, slots=True)
class Frames:
    """
    The frames of an item that one metric scores.

    Attributes:
        given: how many there are.
        views: what is scored; or why that is not possible.
    """

    given: int
    views: Sequence[View] | ImageTooLarge


class Asked:
    """
    An item, and what each metric looks at.

    Attributes:
        options: by metric.
        frames: by metric.
        work: the metrics, with their options, that look at each view; in order.
    """

    def __init__(self, item: UnopenedItem, options: Mapping[str, MetricOptions]) -> None:
        self.item, self.options = item, options
        self.frames = {name: frames_of(item, name, chosen) for name, chosen in options.items()}
        self.work: dict[View, dict[str, MetricOptions]] = {}
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


def views_of(frames: Frames) -> Sequence[View]:
    """What is scored; nothing where that is not possible."""
    return () if isinstance(frames.views, ImageTooLarge) else frames.views


def frames_of(item: UnopenedItem, metric: str, options: MetricOptions) -> Frames:
    """The frames of *item* that *metric* scores with *options*."""
    shots = shots_of(item, moving(options))
    if options.samples is None and len(shots) > MAX_FRAMES:
        sample = f"options.{metric}.samples scores some of them"
        return Frames(len(shots), ImageTooLarge(f"{len(shots)} frames; at most {MAX_FRAMES}; {sample}"))
    chosen = sampled(shots, options.samples or len(shots))
    grid = options.frames == "grid"
    return Frames(len(shots), [tuple(chosen)] if grid else [(shot,) for shot in chosen])


def shots_of(item: UnopenedItem, moving: bool) -> list[Shot]:
    """All frames of an item: its pictures, in order, and each frame of those that move."""
    shots, several = list[Shot](), len(item.frames) > 1
    for index, picture in enumerate(item.frames):
        place = f"frame {index}" if several else ""
        if not moving or picture.film is None:
            shots.append(Shot(picture, place=place))
        elif picture.film.frames == 1:
            shots.append(Shot(picture.film, 0, place))
        else:
            inside = f"{place}, its frame" if several else "frame"
            shots += [Shot(picture.film, n, f"{inside} {n}") for n in range(picture.film.frames)]
    return shots


def sampled(shots: Sequence[Shot], count: int) -> list[Shot]:
    """
    The middle one of each of *count* equal parts; all where there are no more.

    For 10 frames and a count of 4 these are the frames 1, 3, 6 and 8.
    """
    count = min(count, len(shots))
    return [shots[(2 * part + 1) * len(shots) // (2 * count)] for part in range(count)]
