"""The direction of metrics: are higher or lower scores better?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def lower_is_better(metric: Mapping[str, Any]) -> bool:
    """Return True if lower scores are the better ones, by a metric's entry in `GET /models`."""
    return str(metric.get("direction", "")).startswith("lower")
