"""The base class of backends with one queue."""

from collections.abc import Callable
from typing import Any

from service.serving.admission import Demand, Reservation
from service.serving.batcher.scheduler import HostedModel, Scheduler
from service.serving.contract import AdmissionForecast, Backend, WorkEstimate


class QueuedBackend(Backend):
    """A model whose calls wait in one queue of this process."""

    def __init__(
        self, resident: HostedModel[Any], scheduler: Scheduler[Any], clock: Callable[[], float]
    ) -> None:
        self.name, self.info = resident.name, resident.model.info
        self._resident, self._scheduler, self._clock = resident, scheduler, clock

    def forecast(self, lane: str, demand: Demand) -> AdmissionForecast:
        """Predict from the durations of recent batches."""
        return self._scheduler.forecast(self._resident, lane, demand, self._clock())

    def estimate(self, demand: Demand) -> WorkEstimate:
        """Predict from the durations of recent batches."""
        return self._scheduler.estimate(self._resident, demand)

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservation:
        """Reserve the tokens that recent calls had."""
        queue = self._resident.queue
        return Reservation(queue.reserved, lane, queue.cost_of(demand), parts)
