"""Instruments that are read when they are scraped, or that Prometheus' client has no class for."""

from collections.abc import Iterable, Iterator, Mapping
from math import isinf
from typing import Any

from prometheus_client import Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.core.concurrency.imported import imported

STEPS = 40  # buckets of a score, from its metric's least to its largest
SPAN = 40.0  # of a range that has no end, or none on either side; log-odds rarely lie beyond 20


class ScoreHistograms(Collector):
    """One histogram of scores, where each metric has the buckets of its own range."""

    def __init__(self, name: str, documentation: str, ranges: Mapping[str, tuple[float, float]]) -> None:
        self._name, self._documentation = name, documentation
        self._of = {metric: self._histogram(metric, *ends) for metric, ends in ranges.items()}

    def _histogram(self, metric: str, least: float, largest: float) -> Histogram:
        buckets = score_buckets(least, largest)
        histogram = Histogram(self._name, self._documentation, ("metric",), registry=None, buckets=buckets)
        histogram.labels(metric)
        return histogram

    def observe(self, metric: str, score: float) -> None:
        """Count one *score*."""
        self._of[metric].labels(metric).observe(score)

    def collect(self) -> Iterator[Metric]:
        """All metrics as one instrument."""
        family = Metric(self._name, self._documentation, "histogram")
        for histogram in self._of.values():
            for each in histogram.collect():
                family.samples += each.samples
        yield family


def score_buckets(least: float, largest: float) -> list[float]:
    """The upper ends of `STEPS` equal buckets; the first of them takes the least score alone."""
    if isinf(least):
        least = (0 if isinf(largest) else largest - SPAN / 2) - SPAN / 2
    width = SPAN if isinf(largest) else largest - least
    return [float(f"{least + width * step / STEPS:.6g}") for step in range(STEPS + 1)]


class GpuMemory(Collector):
    """Memory of each GPU as torch sees it; nothing where this process uses none."""

    def __init__(self, name: str, documentation: str) -> None:
        self._name, self._documentation = name, documentation

    def collect(self) -> Iterator[Metric]:
        """One sample for each device and kind."""
        family = GaugeMetricFamily(self._name, self._documentation, labels=("device", "kind"))
        for device, kind, size in gpu_memory():
            family.add_metric((device, kind), size)
        yield family


def gpu_memory() -> Iterable[tuple[str, str, int]]:
    """
    Device, kind and bytes: what tensors take, what torch holds for them, and what the device has.

    A scrape must not initialise CUDA, nor a device that no model is on: that takes memory of its own.
    """
    torch: Any = imported("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    for number in range(torch.cuda.device_count()):
        device = f"cuda:{number}"
        yield device, "allocated", torch.cuda.memory_allocated(number)
        yield device, "reserved", torch.cuda.memory_reserved(number)
        yield device, "total", torch.cuda.get_device_properties(number).total_memory
