"""Logs of decisions, as the service leaves them."""

from pathlib import Path

from service.decisions import schema
from service.decisions.file import opened
from service.scoring.decide import DecisionRecord


def write(path: Path, *records: DecisionRecord) -> str:
    """Write a log, and return its name."""
    file = opened(path)
    with file.connection:
        file.connection.executemany(schema.INSERT, [schema.row_of(each, "text") for each in records])
    file.close()
    return path.name
