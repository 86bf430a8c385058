"""The plan of a PAL4VST for `--check`."""

from collections.abc import Iterator

from models.checkpoints.plan import plan_model
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.artifact.layout import weights_file
from models.families.artifact.model import Pal4Vst, load
from models.sizing.memory import full


def plan(settings: LocalSettings) -> Plan:
    """Return the plan of a PAL4VST.  Same errors as `plan_model`."""
    return plan_model(settings, lambda directory: [weights_file(directory)], load, full_batches)


def full_batches(model: Pal4Vst, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield as many pictures as a batch may hold."""
    yield full(batch, model.prepare(model.example()))
