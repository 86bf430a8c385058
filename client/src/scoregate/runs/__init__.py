"""Runs over data sets: rows, plans, results that the next run continues, manifests, shards and clusters."""

from scoregate.runs.batch import BatchOutcome, score

__all__ = ["BatchOutcome", "score"]
