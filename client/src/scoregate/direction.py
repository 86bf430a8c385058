"""Which of two scores is the better one, as the service says of each metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def lower_is_better(metric: Mapping[str, Any]) -> bool:
    """Whether lower scores are the better ones, by a metric's entry in `GET /models`."""
    return str(metric.get("direction", "")).startswith("lower")


def lower_among(metrics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The names of those *metrics* whose lower scores are the better ones."""
    return [name for name, metric in metrics.items() if lower_is_better(metric)]
