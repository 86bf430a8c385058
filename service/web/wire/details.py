"""Wire types of the details of a score, derived from the declarations of the metrics."""

from collections.abc import Mapping
from types import new_class
from typing import Any, Generic, NotRequired, TypeVar

from pydantic import BaseModel, create_model
from typing_extensions import TypedDict, is_typeddict

from service.metrics.common.contract import Metric

D = TypeVar("D")


class OfFrame(TypedDict):
    """The score of one frame; of a video also its number, and the second at which it appears."""

    score: float
    frame: NotRequired[int]
    time_s: NotRequired[float]


class Frames(BaseModel, Generic[D]):
    """Details of an item with several images: one entry for each."""

    frames: list[D]
    frames_used: int
    frames_given: int


class Grid(BaseModel, Generic[D]):
    """
    Details of a grid: those of its score, and what is in it.

    Attributes:
        side: cells in each row and in each column.
    """

    grid: D
    side: int
    frames_used: int
    frames_given: int


def details_by_metric(metrics: Mapping[str, Metric]) -> type[BaseModel]:
    """Build the type of `details` in a result, as *metrics* declare them."""
    fields: dict[str, Any] = {name: (details_of(metric) | None, None) for name, metric in metrics.items()}
    return create_model("Details", __doc__="Details by metric.", **fields)


def details_of(metric: Metric) -> Any:
    """Return the type of one metric's details, for a single image or several."""
    details: Any = metric.details
    of_one: Any = of_frame(details)
    return details | Frames[of_one] | Grid[details]


def of_frame(details: Any) -> Any:
    """Return the type of a metric's details for one of several frames, with the score of the frame."""
    if not is_typeddict(details):
        return details
    described = {"__doc__": f"{details.__doc__} Of one frame."}
    return new_class(
        f"{details.__name__}OfFrame", (details, OfFrame), {}, lambda body: body.update(described)
    )
