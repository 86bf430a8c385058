"""Items as they were sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.core.fields import Orient
from service.images.loader import ImageRef
from service.metrics.common.contract import MetricOptions
from service.scoring.clip import WHOLE, Clip


@dataclass(frozen=True, slots=True)
class UnopenedItem:
    """
    A prompt with its images.

    Attributes:
        frames: the images that are scored against the prompt, one or several.
        options: by metric; a metric that is missing uses its defaults.
        id: the caller's name for it, echoed.
        place: a JSON pointer into the request, for errors.
        references: images that it is compared with.
        source: the image before an edit.
        clip: the part of its videos and animations that is scored.
    """

    prompt: str
    frames: Sequence[ImageRef]
    options: Mapping[str, MetricOptions] = field(default_factory=dict)
    id: str | None = None
    place: str = ""
    references: Sequence[ImageRef] = ()
    source: ImageRef | None = None
    clip: Clip = WHOLE

    @property
    def orient(self) -> Orient | None:
        """The orientation of its pictures; None for the settings' value."""
        return self.frames[0].orient
