"""The plan of a CLIP-FlanT5 for `--check`."""

from dataclasses import replace
from pathlib import Path

import torch

from models.checkpoints.files import weight_files
from models.checkpoints.plan import plan_checkpoint
from models.checkpoints.weights import tensor_sizes
from models.core.family import Memory, Plan
from models.families.clip_flant5 import ClipFlanT5Settings
from models.families.clip_flant5.layout import read_layout, rename
from models.families.clip_flant5.memory import memory_of
from models.families.clip_flant5.published import PUBLISHED
from models.families.clip_flant5.tower import VIT_L_14_336


def plan(settings: ClipFlanT5Settings) -> Plan:
    """Return the plan of a CLIP-FlanT5.  Same errors as `plan_model`."""
    torch.device(settings.device)

    def memory(directory: Path) -> Memory | None:
        layout = read_layout(directory)
        return memory_of({**layout.config, "vocab_size": layout.tokenizer.size}, layout.vision, settings)

    sizes = {name: published.num_parameters for name, published in PUBLISHED.items()}
    planned = plan_checkpoint(settings.checkpoint, settings.revision, count, sizes, memory)
    if planned.memory is None and settings.checkpoint in PUBLISHED:
        known = memory_of(PUBLISHED[settings.checkpoint].config, VIT_L_14_336, settings)
        return replace(planned, memory=known)
    return planned


def count(directory: Path) -> int:
    """Return the number of parameters, the shared embedding once; check all files but the weights."""
    read_layout(directory)
    sizes = tensor_sizes(weight_files(directory))
    return sum({rename(name): size for name, size in sizes.items() if rename(name)}.values())
