"""What `--check` says of an NLI model."""

from collections.abc import Iterator
from pathlib import Path

from models.calls import EntailmentCall
from models.checkpoints.plan import plan_model, total
from models.contract import Prepared
from models.family import Plan
from models.memory import full
from models.nli.loading import kind_of, weights_of
from models.nli.model import Nli, load
from models.nli.text import LENGTH
from models.settings import Batch, LocalSettings


def plan(settings: LocalSettings) -> Plan:
    """What would be loaded.  Raises what `plan_model` does."""
    return plan_model(settings, count, load, full_batches)


def full_batches(nli: Nli, batch: Batch) -> Iterator[list[Prepared]]:
    """As many of the longest pairs as a batch may hold."""
    longest = EntailmentCall("red " * LENGTH, "a red circle")
    yield full(batch, nli.prepare(longest), lambda _, text: text)


def count(directory: Path) -> int:
    """How many numbers the weights hold."""
    kind_of(directory)
    return total(weights_of(directory))
