"""The plan of an NLI model for `--check`."""

from collections.abc import Iterator

from models.checkpoints.files import safetensors_files
from models.checkpoints.plan import plan_model
from models.core.calls import EntailmentCall
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.nli.model import Nli, load
from models.families.nli.text import LENGTH
from models.sizing.memory import full


def plan(settings: LocalSettings) -> Plan:
    """Return the plan of an NLI model.  Same errors as `plan_model`."""
    return plan_model(settings, safetensors_files, load, full_batches)


def full_batches(nli: Nli, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield as many of the longest pairs as a batch may hold."""
    longest = EntailmentCall("red " * LENGTH, "a red circle")
    yield full(batch, nli.prepare(longest))
