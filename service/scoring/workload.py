"""What a request asks of the models, told from its JSON, and how much of it is worked on at a time."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from service.metrics.common.contract import Metric
from service.scoring.frames import ItemPlan, views_of
from service.serving.context import Context
from service.serving.demand import Demand
from service.serving.handle import Handle
from service.serving.reservation import Reservation

BATCHES = 3  # of the slowest model: one runs, one waits, and one is being prepared
LEAST = 2  # frames, so that one is decoded while the model works on the other
COMPUTED = 32  # frames, where no model is asked

Handles = Callable[[str, str], Handle | None]


class Workload:
    """
    The demands of one request.

    As a context manager, it counts what was admitted and has not begun against the lanes.

    Args:
        demands: on each model that the request cannot do without.
        frames: its pictures, where a grid counts as one.
        lane: its calls'.
    """

    def __init__(self, demands: Mapping[Handle, Demand], frames: int, lane: str) -> None:
        self._demands, self._frames, self._lane = demands, frames, lane
        self._reservations: Sequence[Reservation] = ()

    def __enter__(self) -> "Workload":
        if self._frames > 1:  # a single one begins at once
            self._reservations = [
                handle.backend.reserve(self._lane, demand, self._frames)
                for handle, demand in self._demands.items()
            ]
        return self

    def __exit__(self, *exc: object) -> None:
        for reservation in self._reservations:
            reservation.close()

    def admit(self, context: Context) -> None:
        """Raises `LaneFull`, `Overloaded` or `TooLarge` where a model has no room for it, or never will."""
        for handle, demand in self._demands.items():
            handle.admit(context, demand)

    def begin_frame(self) -> None:
        """One more frame's calls will be asked now."""
        for reservation in self._reservations:
            reservation.begin_part()

    def at_once(self) -> int:
        """
        How many frames are worked on at a time.

        As many as keep the slowest model's batches full, by what its calls lately took.  More would only
        hold memory, and keep others waiting.
        """
        if not self._demands:
            return COMPUTED
        slowest = max(handle.backend.estimate(demand) for handle, demand in self._demands.items())
        return max(LEAST, ceil(BATCHES * self._frames / slowest.batches))


def workload(
    asked: Sequence[ItemPlan], metrics: Mapping[str, Metric], lane: str, handles: Handles
) -> Workload:
    """
    What a request asks of the models that it cannot do without.

    Args:
        metrics: all that there are, by name.
        handles: the model that serves a metric in a role.
    """
    demands: dict[Handle, Demand] = {}
    for each in asked:
        for name, frames in each.frames.items():
            if not (views := len(views_of(frames))):
                continue
            for part, chosen in metrics[name].asks(each.options[name]).items():
                for role, demand in metrics[part].demand(each.item.prompt, chosen).items():
                    if demand.calls and (handle := handles(part, role)):
                        more = demand * views
                        demands[handle] = demands[handle] + more if handle in demands else more
    return Workload(demands, sum(len(each.work) for each in asked), lane)
