"""What `--check` says of a CLIP-FlanT5."""

from pathlib import Path

import torch

from models.checkpoints.files import weight_files
from models.checkpoints.plan import plan_checkpoint
from models.checkpoints.weights import parameters
from models.clip_flant5 import ClipFlanT5Settings
from models.clip_flant5.layout import read_layout, rename
from models.family import Plan

# What repositories hold, in numbers: those of the profiles, so that memory is known before a download.
PUBLISHED = {
    "zhiqiulin/clip-flant5-xl": 3_159_560_192,
    "zhiqiulin/clip-flant5-xxl": 11_459_819_520,
}


def plan(settings: ClipFlanT5Settings) -> Plan:
    """
    What would be loaded.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)
    return plan_checkpoint(settings.checkpoint, settings.revision, count, PUBLISHED)


def count(directory: Path) -> int:
    """How many numbers the weights hold, the shared embedding once; checks all but the weights."""
    read_layout(directory)
    held = parameters(weight_files(directory))
    return sum({rename(name): number for name, number in held.items() if rename(name)}.values())
