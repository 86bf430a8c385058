"""The plan of a CLIP-FlanT5 for `--check`."""

from pathlib import Path

import torch

from models.checkpoints.files import weight_files
from models.checkpoints.plan import plan_checkpoint
from models.checkpoints.weights import tensor_sizes
from models.core.family import Plan
from models.families.clip_flant5 import PUBLISHED, ClipFlanT5Settings
from models.families.clip_flant5.layout import read_layout, rename


def plan(settings: ClipFlanT5Settings) -> Plan:
    """Return the plan of a CLIP-FlanT5.  Same errors as `models.checkpoints.plan.plan`."""
    torch.device(settings.device)
    sizes = {name: published.num_parameters for name, published in PUBLISHED.items()}
    return plan_checkpoint(settings.checkpoint, settings.revision, count, sizes)


def count(directory: Path) -> int:
    """Return the number of parameters, the shared embedding once; check all files but the weights."""
    read_layout(directory)
    sizes = tensor_sizes(weight_files(directory))
    return sum({rename(name): size for name, size in sizes.items() if rename(name)}.values())
