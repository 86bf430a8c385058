"""
All Prometheus metrics, declared once; the wire contract fixes their names.

Label values are closed sets and exist from the start, so that the rate of a series that has not
changed yet is 0, not absent.  Labels never contain a prompt, a key, a request id or an image.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import product
from math import floor, isinf, log10
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    make_asgi_app,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service import __version__
from service.core.concurrency.imports import imported
from service.core.errors import Misread, ScoregateError
from service.core.lanes import LANES
from service.observability.notes import Code

CONTENT_TYPE = CONTENT_TYPE_LATEST

STAGES = ("receive", "decode", "prepare", "questions", "queue", "model")
OTHER_ROUTE = "other"  # the route of requests that match none
GONE_STATUS = 499  # the caller disconnected first
STATUSES = (200, 202, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, GONE_STATUS, 500, 502, 503, 504)
NO_LANE = "none"  # the request called no model, or was refused before its lane was read
RESULTS = ("ok", "error", "cancelled")
SCORE_RESULTS = ("ok", "invalid", "refused", "late", "error")
CACHES = ("questions", "scores")
REJECTIONS = (
    "lane_full",
    "memory_full",
    "overloaded",
    "draining",
    "not_ready",
    "unauthorized",
    "forbidden",
    "quota_exceeded",
    "larger_than_quota",
    "too_large",
)

AUDIT_RESULTS = ("complete", "failed", "dropped")
VERDICTS = ("accept", "review", "reject")
OTHER_REASON = "other"
# Why a decision was made; all but the first four are codes of errors by which it was made without a score.
DECISION_REASONS = (
    *("expression", "unreadable", "group", "no_value"),
    *("deadline_exceeded", "lane_full", "memory_full", "overloaded", "not_ready", "model_changed"),
    *("model_fault", "upstream_failed", "answer_refused", "question_llm_failed", "url_failed", "internal"),
    OTHER_REASON,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120)
STAGE_SECONDS = (0.0005, 0.001, 0.0025, *SECONDS)
WAIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BATCH_SECONDS = (0.002, *WAIT_SECONDS[2:12])
SCORE_BUCKETS = 40  # buckets of a score, from its metric's least to its largest
BUCKET_DIGITS = 5  # digits of the width of all buckets, after the first
UNBOUNDED_SCORE_WIDTH = 40.0  # width for ranges without bounds; log-odds rarely exceed 20


class Instruments:
    """
    The Prometheus metrics of one service.

    Args:
        models: the configured models' names.
        metrics: the least and the largest score of each metric that is served, by name.
        policies: the names of the policies.
    """

    def __init__(
        self,
        models: Iterable[str],
        metrics: Mapping[str, tuple[float, float]] | None = None,
        policies: Iterable[str] = (),
    ) -> None:
        self.registry = Registry()
        self.routes: dict[str, bool] = {}  # whether requests of a route call models
        metrics = metrics or {}
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        models = tuple(models)
        self.requests = counter(
            "scoregate_requests_total",
            "Requests by status; 499: the caller disconnected first, or did not read a stream.",
            ("route", "code"),
        )
        self.request_duration = histogram(
            "scoregate_request_duration_seconds",
            "From the first byte of the request to the last of the response. The lane is `none` if the "
            "route calls no model, or the request was rejected before its lane was known.",
            ("route", "lane"),
            buckets=SECONDS,
        )
        self.stage_duration = histogram(
            "scoregate_stage_duration_seconds",
            "Time of one picture or call in a stage; `total` is per `/score` request.",
            ("stage", "lane"),
            buckets=STAGE_SECONDS,
        )
        self.scores = counter(
            "scoregate_scores_total",
            "Metrics of items by result: `ok`; `invalid`, the input cannot be scored; `refused`, by a "
            "full lane or a model that does not serve; `late`, after the deadline; `error`, a fault. "
            "Requests that were rejected as a whole do not count.",
            ("metric", "result"),
        )
        self.warnings = counter(
            "scoregate_warnings_total",
            "Warnings, also in dialects.",
            ("code",),
        )
        self.decisions = counter(
            "scoregate_decisions_total",
            "Decisions of `/decide`; the reason is `expression`, or what decided in its place: "
            "`unreadable`, `group`, `no_value`, or the code of the first error.",
            ("policy", "decision", "reason"),
        )
        self.decision_duration = histogram(
            "scoregate_decision_seconds",
            "From the first byte of the request to the last score of an item.",
            ("policy",),
            buckets=STAGE_SECONDS,
        )
        self.score = ScoreHistograms(
            "scoregate_score",
            "Scores, in 40 equal buckets over the default range, or -20 to 20 without bounds.",
            metrics,
        )
        self.calls = counter(
            "scoregate_calls_total",
            "Calls that ran, on a device, a server or a replica, or waited for it when it ended; not those "
            "from a cache, or that left while they waited. `error`: also if the device broke. `cancelled`: "
            "the caller disconnected.",
            ("model", "lane", "result"),
        )
        self.queue_depth = gauge(
            "scoregate_queue_depth",
            "Waiting calls. High in `bulk` is normal; always high in `interactive`: add a device.",
            ("model", "lane"),
        )
        self.queue_wait = histogram(
            "scoregate_queue_wait_seconds",
            "From joining the queue to the start of the batch, or of the request to a server.",
            ("model", "lane"),
            buckets=WAIT_SECONDS,
        )
        self.batch_size = histogram(
            "scoregate_batch_size",
            "Calls in a successful batch.",
            ("model",),
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
        )
        self.batch_duration = histogram(
            "scoregate_batch_duration_seconds",
            "Time of a batch. On a CPU several may run concurrently.",
            ("model",),
            buckets=BATCH_SECONDS,
        )
        self.out_of_memory = counter(
            "scoregate_out_of_memory_total",
            "Batches, and halves, that ran out of memory; callers only see a delay.",
            ("model", "device"),
        )
        self.stalled = gauge(
            "scoregate_stalled_seconds",
            "Time since the device last answered calls, while work waits or runs; behind an API 0.",
            ("model",),
        )
        self.device_batches = counter(
            "scoregate_device_batches_total", "Batches that ran on a device.", ("model", "device")
        )
        self.device_calls = counter(
            "scoregate_device_calls_total", "Calls in the batches of a device.", ("model", "device")
        )
        self.device_busy = counter(
            "scoregate_device_busy_seconds_total",
            "Time of the batches of a device. A rate near 1 on all devices, summed over models: they "
            "are full; a "
            "CPU is at the number of its cores, at most 8.",
            ("model", "device"),
        )
        self.device_stalled = gauge(
            "scoregate_device_stalled_seconds",
            "Time since the running batch began or was answered in part. Above a minute: the device hangs.",
            ("model", "device"),
        )
        self.device_up = gauge(
            "scoregate_device_up",
            "0 if the device failed permanently; `/health` has the fault.",
            ("model", "device"),
        )
        self.cache_requests = counter(
            "scoregate_cache_requests_total",
            "Look-ups of question sets and model outputs. `coalesced`: joined one in progress.",
            ("cache", "result"),
        )
        self.cache_errors = counter(
            "scoregate_cache_errors_total",
            "Failed reads and writes of a Redis, and invalid values in it.",
            ("cache",),
        )
        self.question_llm_calls = counter(
            "scoregate_question_llm_calls_total",
            "LLM calls for question sets; `invalid` ones returned something that is no question set.",
            ("result",),
        )
        self.refused_answers = counter(
            "scoregate_refused_answers_total",
            "Written grades that do not have the form of their rubric, also if a repetition had it.",
            ("reason",),
        )
        self.rejections = counter(
            "scoregate_rejections_total",
            "Rejected requests, and rejected metrics of requests, by code.",
            ("reason",),
        )
        self.decisions_unlogged = counter(
            "scoregate_decisions_unlogged_total", "Decisions that could not be written to the log."
        )
        self.audits = counter(
            "scoregate_audits_total",
            "Audited items: `complete`; `failed`, without some score; `dropped`, for which there was no "
            "memory, or no time before the shut-down.",
            ("result",),
        )
        self.model_ready = gauge("scoregate_model_ready", "1 while the model serves.", ("model",))
        self.replicas = gauge(
            "scoregate_replicas",
            "Replicas on Ray; 1 without Ray.",
            ("model",),
        )
        self.pixel_budget = gauge("scoregate_pixel_budget_bytes", "`images.decoded_budget_mb`, in bytes.")
        self.pixels_held = gauge(
            "scoregate_pixels_held_bytes", "Decoded pixels of all requests. Near the budget: pictures wait."
        )
        self.request_budget = gauge("scoregate_request_budget_bytes", "`server.requests_mb`, in bytes.")
        self.requests_held = gauge(
            "scoregate_requests_held_bytes",
            "Bodies and pictures by URL of all requests. At the budget: `memory_full`.",
        )
        gauge("scoregate_build_info", "Always 1.", ("version",)).labels(__version__).set(1)
        self.gpu_memory = GpuMemory(
            "scoregate_gpu_memory_bytes",
            "Memory of each GPU: `allocated` by tensors, `reserved` by PyTorch for tensors, and "
            "`total`. `reserved` near `total`: lower `batch.max_cost_tokens`.",
        )
        for collector in (self.score, self.gpu_memory):
            self.registry.register(collector)
        for standard in (ProcessCollector, PlatformCollector, GCCollector):
            standard(registry=self.registry)
        self._create(models, metrics)
        for policy in policies:
            self.add_policy(policy)
        self.add_route(OTHER_ROUTE, asks_models=False)
        for each in vars(self).values():
            if isinstance(each, MetricWrapperBase):  # every request uses one of a few values
                each.labels = cache(each.labels)  # type: ignore[method-assign]

    def _create(self, models: Iterable[str], metrics: Iterable[str]) -> None:
        for model in models:
            self.add_model(model)
        for of, result in product(CACHES, ("hit", "miss", "coalesced")):
            self.cache_requests.labels(of, result)
            self.cache_errors.labels(of)
        for result in ("ok", "invalid", "error"):
            self.question_llm_calls.labels(result)
        for stage, lane in product((*STAGES, "total"), LANES):
            self.stage_duration.labels(stage, lane)
        for metric, result in product(metrics, SCORE_RESULTS):
            self.scores.labels(metric, result)
        for result in AUDIT_RESULTS:
            self.audits.labels(result)
        for reason in REJECTIONS:
            self.rejections.labels(reason)
        for fault in Misread:
            self.refused_answers.labels(fault)
        for code in Code:
            self.warnings.labels(code)

    def add_route(self, route: str, *, asks_models: bool, statuses: Iterable[int] = STATUSES) -> None:
        """
        Create the series of *route*, a path template.

        Args:
            asks_models: its requests have a lane.
            statuses: that its responses have.
        """
        self.routes[route] = asks_models
        for status in statuses:
            self.requests.labels(route, str(status))
        for lane in (*LANES, NO_LANE) if asks_models else (NO_LANE,):
            self.request_duration.labels(route, lane)

    def add_policy(self, policy: str) -> None:
        """Create the series of *policy*."""
        self.decision_duration.labels(policy)
        for decision, reason in product(VERDICTS, DECISION_REASONS):
            self.decisions.labels(policy, decision, reason)

    def count_decision(self, policy: str, decision: str, reason: str, seconds: float) -> None:
        """Count a decision of *policy*; a reason that is not in `DECISION_REASONS` counts as another one."""
        known = reason if reason in DECISION_REASONS else OTHER_REASON
        self.decisions.labels(policy, decision, known).inc()
        self.decision_duration.labels(policy).observe(seconds)

    def count_audit(self, result: str) -> None:
        """Count an item whose audit has ended, or was dropped."""
        self.audits.labels(result).inc()

    def count_request(self, route: str, status: int, seconds: float, lane: str = NO_LANE) -> None:
        """Count one response; a route that was not added counts as `OTHER_ROUTE`."""
        route = route if route in self.routes else OTHER_ROUTE
        self.requests.labels(route, str(status)).inc()
        self.request_duration.labels(route, lane).observe(seconds)

    def count_score(self, metric: str, outcome: float | ScoregateError) -> None:
        """Count a requested score, or the error in its place."""
        if isinstance(outcome, ScoregateError):
            self.scores.labels(metric, result_of(outcome)).inc()
        else:
            self.scores.labels(metric, "ok").inc()
            self.score.of[metric].observe(outcome)

    def count_batch(self, model: str, size: int, seconds: float) -> None:
        """Count a batch of *size* calls."""
        self.batch_size.labels(model).observe(size)
        self.batch_duration.labels(model).observe(seconds)

    def add_model(self, model: str) -> None:
        """Create the series of *model*."""
        for lane, result in product(LANES, RESULTS):
            self.calls.labels(model, lane, result)
        for lane in LANES:
            self.queue_depth.labels(model, lane)
            self.queue_wait.labels(model, lane)
        for each in (self.batch_size, self.batch_duration, self.stalled, self.model_ready):
            each.labels(model)
        self.replicas.labels(model).set(1)

    def add_device(self, model: str, device: str, stalled_for: Callable[[], float]) -> None:
        """Create the series of a *device* with a copy of *model*."""
        for each in (self.device_batches, self.device_calls, self.device_busy, self.out_of_memory):
            each.labels(model, device)
        self.device_stalled.labels(model, device).set_function(stalled_for)
        self.device_up.labels(model, device).set(1)

    def remove_device(self, model: str, device: str) -> None:
        """Remove the series of a *device* that does not come back."""
        self.gpu_memory.elsewhere.pop(device, None)
        for each in vars(self).values():
            if isinstance(each, MetricWrapperBase) and each._labelnames[:2] == ("model", "device"):
                for found in tuple(each._metrics):
                    if found[:2] == (model, device):
                        each.remove(*found)
                each.labels.cache_clear()  # type: ignore[attr-defined]

    def count_device(self, model: str, device: str, size: int, seconds: float) -> None:
        """Count a batch of *size* calls of *model* on *device*."""
        self.device_batches.labels(model, device).inc()
        self.device_calls.labels(model, device).inc(size)
        self.device_busy.labels(model, device).inc(max(0.0, seconds))

    def count_out_of_memory(self, model: str, device: str, batches: int = 1) -> None:
        """Count *batches* that ran out of memory."""
        self.out_of_memory.labels(model, device).inc(batches)

    def count_call(
        self, model: str, lane: str, outcome: object, waited_s: float | None, *, gone: bool
    ) -> None:
        """
        Count a call.

        Args:
            waited_s: seconds until its batch began; None if none did.
            gone: no caller waits for its result any more.
        """
        result = "cancelled" if gone else "error" if isinstance(outcome, Exception) else "ok"
        self.calls.labels(model, lane, result).inc()
        if waited_s is not None:
            self.queue_wait.labels(model, lane).observe(waited_s)

    def count_rejection(self, error: ScoregateError) -> None:
        """Count a request that was rejected as a whole; other errors are ignored."""
        if error.code in REJECTIONS:
            self.rejections.labels(error.code).inc()

    def exposition(self) -> bytes:
        """Return the text that Prometheus scrapes."""
        return generate_latest(self.registry)

    def app(self) -> Callable[..., Any]:
        """Return an ASGI app that serves the Prometheus metrics on a port of its own."""
        app: Callable[..., Any] = make_asgi_app(self.registry)
        return app


class Registry(CollectorRegistry):
    """The Prometheus metrics, without the series of their creation times, as many as those of counters."""

    def collect(self) -> Iterator[Metric]:
        """Yield all Prometheus metrics."""
        for family in super().collect():
            family.samples = [each for each in family.samples if not each.name.endswith("_created")]
            yield family


def result_of(error: ScoregateError) -> str:
    """Return the result label of a failed score, one of `SCORE_RESULTS`."""
    if error.status == 504:
        return "late"
    if error.status in (429, 503):
        return "refused"
    return "invalid" if error.status < 500 else "error"


class ScoreHistograms(Collector):
    """
    One Prometheus histogram of scores, with buckets for each metric's range.

    Attributes:
        of: the series of each metric.
    """

    def __init__(self, name: str, documentation: str, ranges: Mapping[str, tuple[float, float]]) -> None:
        self._name, self._documentation = name, documentation
        made = partial(Histogram, name, documentation, ("metric",), registry=None)
        self._of = {metric: made(buckets=score_buckets(*ends)) for metric, ends in ranges.items()}
        self.of = {metric: histogram.labels(metric) for metric, histogram in self._of.items()}

    def collect(self) -> Iterator[Metric]:
        """Yield the histograms of all metrics as one Prometheus metric."""
        family = Metric(self._name, self._documentation, "histogram")
        for histogram in self._of.values():
            for each in histogram.collect():
                family.samples += each.samples
        yield family


def score_buckets(least: float, largest: float) -> list[float]:
    """
    Return the upper bounds of `SCORE_BUCKETS` equal buckets, after one for the least score alone.

    There are fewer where a float has no numbers between them.
    """
    if isinf(least):
        least = (0 if isinf(largest) else largest - UNBOUNDED_SCORE_WIDTH / 2) - UNBOUNDED_SCORE_WIDTH / 2
    width = UNBOUNDED_SCORE_WIDTH if isinf(largest) else largest - least
    decimals = BUCKET_DIGITS - floor(log10(width))
    ends = (least + width * step / SCORE_BUCKETS for step in range(SCORE_BUCKETS + 1))
    return [*dict.fromkeys(round(end, decimals) for end in ends)]


class GpuMemory(Collector):
    """
    Memory of each GPU as reported by torch; no samples if neither this process nor a replica uses one.

    Attributes:
        elsewhere: bytes by kind of each replica's GPUs, as last reported.
    """

    def __init__(self, name: str, documentation: str) -> None:
        self._name, self._documentation = name, documentation
        self.elsewhere: dict[str, Mapping[str, int]] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield one gauge, with a sample for each device and kind."""
        family = GaugeMetricFamily(self._name, self._documentation, labels=("device", "kind"))
        for device, kind, size in gpu_memory():
            family.add_metric((device, kind), size)
        for device, sizes in self.elsewhere.items():
            for kind, size in sizes.items():
                family.add_metric((device, kind), size)
        yield family


def gpu_memory() -> Iterable[tuple[str, str, int]]:
    """
    Yield device, kind and bytes: allocated by tensors, reserved by torch, and the device's total.

    CUDA is never initialised by a scrape, and only used devices are read: both would take GPU memory.
    """
    torch: Any = imported("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    for number in range(torch.cuda.device_count()):
        device = f"cuda:{number}"
        yield device, "allocated", torch.cuda.memory_allocated(number)
        yield device, "reserved", torch.cuda.memory_reserved(number)
        yield device, "total", torch.cuda.get_device_properties(number).total_memory
