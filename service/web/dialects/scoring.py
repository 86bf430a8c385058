"""Scoring for all dialects: pictures with prompts go to the engine in the bulk lane, and wait there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from starlette.requests import Request

from service.core.concurrency.disconnect import while_connected
from service.core.concurrency.tasks import side_by_side
from service.core.errors import Invalid, NotFound, Overloaded, bare
from service.core.lanes import BULK
from service.images.loader import ImageRef
from service.images.sources import Base64, Encoded, Url
from service.metrics.common.contract import Metric, MetricOptions
from service.metrics.common.registry import rewards
from service.scoring.plan import UnopenedItem
from service.serving.context import Context
from service.web.dialects.deadline_retry import DeadlineRetry, Outcomes
from service.web.dialects.retry_budget import RetryBudget
from service.web.dialects.unheard import Unheard
from service.web.endpoints import context_of, header_timeout
from service.wiring.bootstrap import Service

WINDOWS_AT_ONCE = 2  # of a request: the next one is prepared while the last calls of one run


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    A picture, its prompt and its metrics.

    Attributes:
        options: by metric, instead of those of the settings.
    """

    prompt: str
    picture: Encoded | Base64 | Url
    metrics: tuple[str, ...]
    options: Mapping[str, MetricOptions] = field(default_factory=dict)


class Dialects:
    """
    The scoring of the dialects on *service*, with the metric and the options of the settings.

    Raises:
        SettingsError: the metric in the settings does not exist, or has other options.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._rewards = rewards(service.metrics, service.settings.dialects)
        server = service.settings.server
        self._unheard = Unheard()
        self._room = RetryBudget(max(server.unfinished_bodies_mb, server.body_limit_mb) * 2**20)

    def metric(self, requested: str | None) -> str:
        """Return the *requested* metric, or else that of the settings.  Raises `UnknownMetric`."""
        name = requested or self._rewards.metric
        self._service.engine.catalog.handles([name])
        return name

    def metric_of_path(self, name: str) -> str:
        """Return the metric of a path.  Raises `NotFound`."""
        if reason := self._service.engine.catalog.absent(name):
            raise NotFound(f"no path of this dialect, or no metric: {reason}")
        return name

    @property
    def known(self) -> Mapping[str, Metric]:
        """Return every declared metric, by name."""
        return self._service.metrics

    def absent(self, metric: str) -> str:
        """Return why *metric* is not served; empty if it is."""
        return self._service.engine.catalog.absent(metric)

    def options(self, metric: Metric) -> MetricOptions:
        """Return the options of the settings."""
        return self._rewards.options.get(metric.name) or metric.options()

    @property
    def metrics(self) -> list[str]:
        """Return the served metrics, that of the settings first."""
        return [*dict.fromkeys([self._rewards.metric, *self._service.engine.metrics])]

    def check_number(self, pictures: int) -> None:
        """Check the number of *pictures* before any of them is read.  Raises `Invalid`."""
        most = self._service.settings.server.max_items
        if not 1 <= pictures <= most:
            raise Invalid(f"the request has {pictures} pictures; from 1 to {most} are allowed")

    def check_shard(self, pictures: int) -> None:
        """Check the number of a trainer's pictures, which come in one request.  Raises `Invalid`."""
        most = self._service.settings.dialects.max_pictures
        if not 1 <= pictures <= most:
            raise Invalid(
                f"the request has {pictures} pictures; from 1 to {most} are allowed "
                "(the setting dialects.max_pictures)"
            )

    async def scored(
        self, request: Request, wanted: Sequence[Wanted], timeout_s: float, *, in_windows: bool = False
    ) -> Sequence[Outcomes]:
        """
        Score each of *wanted*, and return the outcome of each metric, in order.

        Args:
            timeout_s: seconds from the first byte of the request, unless a header sets a timeout.
            in_windows: allow more pictures than `/score`, and score that many at a time.

        Raises:
            Invalid: there are too few or too many pictures.
            Forbidden: the key may not use the bulk lane.
            CallerGone: the caller has disconnected.
        """
        if not in_windows:
            self.check_number(len(wanted))
        timeout_ms = header_timeout(request) or round(timeout_s * 1000)
        context = context_of(self._service, request, timeout_ms, BULK)
        request.state.items = len(wanted)
        work = side_by_side(
            (self._window(each, context) for each in self._windows(wanted)), lambda: WINDOWS_AT_ONCE
        )
        return [*chain.from_iterable(await while_connected(request.receive, work))]

    def _windows(self, wanted: Sequence[Wanted]) -> Iterator[Sequence[Wanted]]:
        size = self._service.settings.server.max_items
        return (wanted[start : start + size] for start in range(0, len(wanted), size))

    async def _window(self, wanted: Sequence[Wanted], context: Context) -> Sequence[Outcomes]:
        """Score one window.  If there is no room to wait, that error is each outcome."""
        pictures = shared(each.picture for each in wanted)
        items = [
            UnopenedItem(each.prompt, [picture], {**self._rewards.options, **each.options})
            for each, picture in zip(wanted, pictures, strict=True)
        ]
        metrics = [each.metrics for each in wanted]
        patience = DeadlineRetry(self._service.engine, items, metrics, context, self._unheard)
        try:
            return await patience.outcomes(self._room, sum(map(size_of, wanted)))
        except Overloaded as error:
            return [dict.fromkeys(each.metrics, bare(error)) for each in wanted]


def shared(sources: Iterable[Encoded | Base64 | Url]) -> list[ImageRef]:
    """Return the picture of each source; repeated sources and equal URLs share one."""
    found: dict[Url | int, ImageRef] = {}
    keys = [(source if isinstance(source, Url) else id(source), source) for source in sources]
    return [found.setdefault(key, ImageRef(source)) for key, source in keys]


def size_of(wanted: Wanted) -> int:
    """Return the bytes that a picture holds while it waits."""
    match wanted.picture:
        case Encoded(data):
            return len(data)
        case Base64(text) | Url(text):
            return len(text)
