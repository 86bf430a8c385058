"""Prometheus metrics with collectors of their own."""

from collections.abc import Iterable, Iterator, Mapping
from math import isinf
from typing import Any

from prometheus_client import Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.core.concurrency.imported import imported

STEPS = 40  # buckets of a score, from its metric's least to its largest
SPAN = 40.0  # width for ranges without bounds; log-odds rarely exceed 20


class ScoreHistograms(Collector):
    """One Prometheus histogram of scores, with buckets for each metric's range."""

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
        """Yield the histograms of all metrics as one Prometheus metric."""
        family = Metric(self._name, self._documentation, "histogram")
        for histogram in self._of.values():
            for each in histogram.collect():
                family.samples += each.samples
        yield family


def score_buckets(least: float, largest: float) -> list[float]:
    """Return the upper bounds of `STEPS` equal buckets, after one bucket for the least score alone."""
    if isinf(least):
        least = (0 if isinf(largest) else largest - SPAN / 2) - SPAN / 2
    width = SPAN if isinf(largest) else largest - least
    return [float(f"{least + width * step / STEPS:.6g}") for step in range(STEPS + 1)]


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
