"""The plan of a CLIP of transformers for `--check`."""

from models.checkpoints.files import safetensors_files
from models.checkpoints.plan import plan_model
from models.core.family import Plan
from models.core.settings import LocalSettings
from models.families.clip.towers import full_batches
from models.families.transformers_clip.kinds import KINDS
from models.families.transformers_clip.model import load


def plan(settings: LocalSettings) -> Plan:
    """Return the plan of a CLIP.  Same errors as `plan_model`."""
    return plan_model(settings, lambda directory: safetensors_files(directory, *KINDS), load, full_batches)
