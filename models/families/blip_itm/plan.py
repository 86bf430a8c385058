"""The plan of a BLIP or BLIP-2 for `--check`."""

from collections.abc import Iterator

from models.checkpoints.files import safetensors_files
from models.checkpoints.plan import plan_model
from models.core.calls import RewardCall
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.blip_itm.kinds import KINDS
from models.families.blip_itm.model import LENGTH, BlipItm, load
from models.sizing.memory import full


def plan(settings: LocalSettings) -> Plan:
    """Return the plan of a BLIP or BLIP-2.  Same errors as `plan_model`."""
    return plan_model(settings, lambda directory: safetensors_files(directory, *KINDS), load, full_batches)


def full_batches(model: BlipItm, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield as many different pictures as a batch may hold, each with the longest text."""
    yield full(batch, model.prepare(RewardCall(model.example().image, "red " * LENGTH)), "key")
