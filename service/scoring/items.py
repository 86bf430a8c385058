"""Items as they were sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.images.loader import ImageRef
from service.metrics.common.contract import MetricOptions


@dataclass(frozen=True, slots=True)
class UnopenedItem:
    """
    A prompt with its pictures, as they were sent.

    Attributes:
        frames: the pictures that are judged against the prompt, one or several.
        options: by metric; a metric that is left out has its defaults.
        id: the caller's name for it, echoed.
        place: where it stands in the request, as a JSON pointer, for errors.
        references: pictures that it is compared with.
        source: the picture before an edit.
    """

    prompt: str
    frames: Sequence[ImageRef]
    options: Mapping[str, MetricOptions] = field(default_factory=dict)
    id: str | None = None
    place: str = ""
    references: Sequence[ImageRef] = ()
    source: ImageRef | None = None
