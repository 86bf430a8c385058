"""The work that a request means for each model, from its JSON, and how much of it runs at a time."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil

from service.core.errors import BadImage
from service.metrics.common.contract import Metric
from service.scoring.frames import ItemPlan
from service.serving.context import Context
from service.serving.demand import Demand
from service.serving.handle import Handle
from service.serving.reservation import Reservation
from service.serving.waiting import Place

BATCHES = 3  # of the slowest model: one runs, one waits, and one is being prepared
LEAST = 2  # frames, so that one is decoded while the model works on the other
COMPUTED = 32  # frames, if no model is used

Handles = Callable[[str, str], Handle | None]


class Workload:
    """
    The demands of one request.

    As a context manager, it reserves space in the lanes for work that was admitted and has not begun.

    Args:
        demands: for each model that the request needs.
        frames: the number of inputs; a grid counts as one.
        lane: of its calls.
    """

    def __init__(self, demands: Mapping[Handle, Demand], frames: int, lane: str) -> None:
        self._demands, self._frames, self._lane = demands, frames, lane
        self._reservations: Sequence[Reservation] = ()

    def __enter__(self) -> "Workload":
        if self._frames > 1:  # a single one begins immediately
            self._reservations = [
                handle.backend.reserve(self._lane, demand, self._frames)
                for handle, demand in self._demands.items()
            ]
        return self

    def __exit__(self, *exc: object) -> None:
        for reservation in self._reservations:
            reservation.close()

    def admit(self, context: Context) -> None:
        """Raise `LaneFull`, `Overloaded` or `TooLarge` if a model cannot take the request."""
        for handle, demand in self._demands.items():
            handle.admit(context, demand)

    async def wait_for_room(self, context: Context, place: Place) -> None:
        """Wait until each model has room, see `Handle.wait_for_room`."""
        for handle, demand in self._demands.items():
            await handle.wait_for_room(context, demand, place)

    def begin_frame(self) -> None:
        """Release the reservation of one frame, whose calls are queued now."""
        for reservation in self._reservations:
            reservation.begin_part()

    def at_once(self) -> int:
        """
        Return the number of frames to score concurrently.

        Enough to keep the batches of the slowest model full, by its recent batches.  More would only hold
        memory and delay others.
        """
        if not self._demands:
            return COMPUTED
        slowest = max(handle.backend.estimate(demand) for handle, demand in self._demands.items())
        return max(LEAST, ceil(BATCHES * self._frames / slowest.batches))


def workload(
    plans: Sequence[ItemPlan], metrics: Mapping[str, Metric], lane: str, handles: Handles
) -> Workload:
    """
    Add up the demands of all items on the models that they need.

    Args:
        metrics: all declared metrics.
        handles: returns the model of a metric in a role.
    """
    demands: dict[Handle, Demand] = {}
    for plan in plans:
        for name, inputs in plan.inputs.items():
            if isinstance(inputs, BadImage):
                continue
            for part, chosen in metrics[name].asks(plan.options[name]).items():
                for role, demand in metrics[part].demand(plan.item.prompt, chosen).items():
                    if demand.calls and (handle := handles(part, role)):
                        more = demand * len(inputs)
                        demands[handle] = demands[handle] + more if handle in demands else more
    return Workload(demands, sum(len(plan.work) for plan in plans), lane)
