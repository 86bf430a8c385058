"""What `--check` says of a CLIP-FlanT5."""

from dataclasses import replace
from pathlib import Path

import torch

from models.checkpoints.files import weight_files
from models.checkpoints.plan import plan_checkpoint
from models.checkpoints.weights import parameters
from models.core.family import Memory, Plan
from models.families.clip_flant5 import ClipFlanT5Settings
from models.families.clip_flant5.layout import read_layout, rename
from models.families.clip_flant5.memory import memory_of
from models.families.clip_flant5.published import PUBLISHED
from models.families.clip_flant5.tower import VIT_L_14_336


def plan(settings: ClipFlanT5Settings) -> Plan:
    """
    What would be loaded.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)

    def memory(directory: Path) -> Memory | None:
        layout = read_layout(directory)
        return memory_of({**layout.config, "vocab_size": layout.tokenizer.size}, layout.vision, settings)

    numbers = {name: published.numbers for name, published in PUBLISHED.items()}
    planned = plan_checkpoint(settings.checkpoint, settings.revision, count, numbers, memory)
    if planned.memory is None and settings.checkpoint in PUBLISHED:
        known = memory_of(PUBLISHED[settings.checkpoint].config, VIT_L_14_336, settings)
        return replace(planned, memory=known)
    return planned


def count(directory: Path) -> int:
    """How many numbers the weights hold, the shared embedding once; checks all but the weights."""
    read_layout(directory)
    held = parameters(weight_files(directory))
    return sum({rename(name): number for name, number in held.items() if rename(name)}.values())
