"""Runs over data sets, whose results the next run continues; over named pictures, and over known scores."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scoregate.runs.batch import BatchOutcome, score

__all__ = ["BatchOutcome", "score"]


def __getattr__(name: str) -> Any:
    """Import a run over a whole data set at its first use: benchmarks need rows, plans and results alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.batch"), name)
