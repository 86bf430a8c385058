"""The JSON of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ScoreParams:
    """The parameters of a request that hold for all its items."""

    metrics: Sequence[str]
    options: Mapping[str, Any] | None
    explain: bool
    priority: str

    def request(self, wire: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the body of `POST /score` for items of the wire format."""
        return given(
            items=list(wire),
            metrics=list(self.metrics),
            options=self.options or None,
            explain=self.explain or None,
            priority=self.priority,
        )


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def names_of(metrics: Sequence[str] | str) -> list[str]:
    """Return the metrics as a list; a single one may be given as its name."""
    return [metrics] if isinstance(metrics, str) else list(metrics)
