"""The JSON of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ScoreParams:
    """What is asked about every item of a request."""

    metrics: Sequence[str]
    options: Mapping[str, Any] | None
    explain: bool
    priority: str

    def request(self, wire: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The request of `POST /score` about items as they are written there."""
        return given(
            items=list(wire),
            metrics=list(self.metrics),
            options=self.options or None,
            explain=self.explain or None,
            priority=self.priority,
        )


def given(**fields: Any) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value is not None}


def names_of(metrics: Sequence[str] | str) -> list[str]:
    """The metrics; a single one may be given by its name alone."""
    return [metrics] if isinstance(metrics, str) else list(metrics)
