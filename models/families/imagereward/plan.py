"""The plan of an ImageReward for `--check`."""

from collections.abc import Iterator

from models.checkpoints.plan import plan_model
from models.core.calls import RewardCall
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.imagereward.layout import weights_file
from models.families.imagereward.model import ImageReward, load
from models.families.imagereward.tokenizer import LENGTH
from models.sizing.memory import full


def plan(settings: LocalSettings) -> Plan:
    """Return the plan of an ImageReward.  Same errors as `plan_model`."""
    return plan_model(settings, lambda directory: [weights_file(directory)], load, full_batches)


def full_batches(model: ImageReward, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield as many different pictures as a batch may hold, each with the longest text."""
    longest = RewardCall(model.example().image, "red " * LENGTH)
    yield full(batch, model.prepare(longest), "key")
