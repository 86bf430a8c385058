"""What all dialects share: pictures with prompts go to the engine in the bulk lane, and wait there."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from service.bootstrap import Service
from service.concurrency.disconnect import while_connected
from service.dialects.patience import Outcomes, Patience
from service.dialects.unheard import Unheard
from service.dialects.waiting import WaitingRoom
from service.errors import Invalid, NotFound
from service.http.context import context_of, header_timeout
from service.items import Picture, UnopenedItem
from service.lanes import BULK
from service.metrics.rewards import rewards
from service.sources import Base64, Encoded, Url


@dataclass(frozen=True, slots=True)
class Wanted:
    """A picture and its prompt, and the metrics that are asked for."""

    prompt: str
    picture: Encoded | Base64 | Url
    metrics: tuple[str, ...]


class Dialects:
    """
    What the dialects on *service* ask, and how.

    Raises:
        SettingsError: they ask for a metric that is not there, or with options that it does not take.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._rewards = rewards(service.metrics, service.settings.dialects)
        server = service.settings.server
        self._unheard = Unheard()
        self._room = WaitingRoom(max(server.unfinished_bodies_mb, server.body_limit_mb) * 2**20)

    def metric(self, asked: str | None) -> str:
        """The metric that a request *asked* for, or else that of the settings.  Raises `UnknownMetric`."""
        name = asked or self._rewards.metric
        self._service.engine.offer.handles([name])
        return name

    def metric_of_path(self, asked: str) -> str:
        """The metric that a path names.  Raises `NotFound`."""
        if reason := self._service.engine.offer.absent(asked):
            raise NotFound(f"no path of this dialect, or no metric: {reason}")
        return asked

    def absent(self, metric: str) -> str:
        """Why *metric* is not served; empty where it is."""
        return self._service.engine.offer.absent(metric)

    async def scored(
        self, request: Request, wanted: Sequence[Wanted], timeout_s: float
    ) -> Sequence[Outcomes]:
        """
        The outcome of each metric for each of *wanted*, in order.

        Args:
            timeout_s: for all of it, from the first byte of the request, unless a header says otherwise.

        Raises:
            Invalid: nothing is wanted, or more than a request may.
            Forbidden: the caller's key has no right to the bulk lane.
            Overloaded: too many requests wait already.
            CallerGone: nobody waits any more.
        """
        most = self._service.settings.server.max_items
        if not 1 <= len(wanted) <= most:
            raise Invalid(f"the request has {len(wanted)} pictures; from 1 to {most} are allowed")
        timeout_ms = header_timeout(request) or round(timeout_s * 1000)
        context = context_of(self._service, request, timeout_ms, BULK)
        request.state.items = len(wanted)
        items = [UnopenedItem(each.prompt, [Picture(each.picture)], self._rewards.options) for each in wanted]
        metrics = [each.metrics for each in wanted]
        patience = Patience(self._service.engine, items, metrics, context, self._unheard)
        work = patience.outcomes(self._room, sum(map(size_of, wanted)))
        return await while_connected(request.receive, work)


def size_of(wanted: Wanted) -> int:
    """Bytes that it holds while it waits."""
    match wanted.picture:
        case Encoded(data):
            return len(data)
        case Base64(text) | Url(text):
            return len(text)
