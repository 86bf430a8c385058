"""What `--check` says of an NLI model."""

from collections.abc import Iterator
from pathlib import Path

from models.checkpoints.plan import plan_model, total
from models.core.calls import EntailmentCall
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.nli.loading import kind_of, weights_of
from models.families.nli.model import Nli, load
from models.families.nli.text import LENGTH
from models.sizing.memory import full


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
