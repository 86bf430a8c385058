"""The plan of a model for sentences, for `--check`."""

from collections.abc import Iterator

from models.checkpoints.files import safetensors_files
from models.checkpoints.plan import plan_model
from models.core.calls import TextCall
from models.core.contract import Prepared
from models.core.family import Plan
from models.core.settings import Batch, LocalSettings
from models.families.embedding import LENGTH
from models.families.embedding.model import SentenceTransformer, load
from models.sizing.memory import full


def plan(settings: LocalSettings) -> Plan:
    """Return the plan of a model for sentences.  Same errors as `plan_model`."""
    return plan_model(settings, safetensors_files, load, full_batches)


def full_batches(model: SentenceTransformer, batch: Batch) -> Iterator[list[Prepared]]:
    """Yield as many of the longest texts as a batch may hold."""
    yield full(batch, model.prepare(TextCall("red " * LENGTH)))
