"""The plan of an InstructBLIP for `--check`."""

from collections.abc import Iterator

from models.checkpoints.files import safetensors_files
from models.checkpoints.plan import plan_model
from models.core.calls import LikelihoodCall
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.instructblip.model import LENGTH, InstructBlip, load
from models.families.instructblip.network import KINDS
from models.sizing.memory import full


def plan(settings: LocalSettings) -> Plan:
    """Return the plan of an InstructBLIP.  Same errors as `plan_model`."""
    return plan_model(settings, lambda directory: safetensors_files(directory, *KINDS), load, full_batches)


def full_batches(model: InstructBlip, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield as many different pictures as a batch may hold, each with the longest question."""
    longest = LikelihoodCall(model.example().image, "red " * LENGTH, "yes")
    yield full(batch, model.prepare(longest), "digest")
