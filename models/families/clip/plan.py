"""What `--check` says of a CLIP."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import open_clip
import torch
from huggingface_hub import try_to_load_from_cache

from models.checkpoints.files import CLIP_HUB_WEIGHTS, open_clip_weights, weight_files
from models.checkpoints.plan import in_cache, plan_checkpoint, total
from models.core.calls import TextCall
from models.core.contract import CheckpointError, Prepared
from models.core.family import Memory, Plan
from models.core.settings import Batch
from models.families.clip import ClipSettings
from models.families.clip.model import Clip, load
from models.families.clip.source import HUB, LOCAL, has_own_layout
from models.sizing.memory import full, predicted

# What repositories hold, in numbers: those of the profiles, so that memory is known before a download.
PUBLISHED = {
    "timm/vit_large_patch14_clip_224.openai": 427_616_513,
    "timm/vit_large_patch14_clip_336.openai": 427_944_193,
}


def plan(settings: ClipSettings) -> Plan:
    """
    What would be loaded.

    Raises:
        CheckpointError: it can be seen that this will not work.
        RuntimeError: torch knows no such device.
    """
    torch.device(settings.device)
    if settings.pretrained:
        return replace(plan_named(settings.model, settings.pretrained), memory=memory(settings))
    checkpoint = (settings.model or settings.checkpoint).removeprefix(LOCAL).removeprefix(HUB)

    def held(directory: Path) -> Memory | None:
        return memory(settings.model_copy(update={"model": str(directory)}))

    return plan_checkpoint(checkpoint, settings.revision, count, PUBLISHED, held)


def memory(settings: ClipSettings) -> Memory | None:
    """What a CLIP that is here takes, or one whose architecture open_clip knows."""
    here = settings.model_copy(update={"revision": "-"})  # or all the weights would be read for a digest
    return predicted(settings.device, lambda: load(here), lambda clip: full_batches(clip, settings.batch))


def full_batches(clip: Clip, batch: Batch) -> Iterator[list[Prepared]]:
    """As many images as a batch may hold, and as many texts."""
    for call in (clip.example(), TextCall("a red circle")):
        yield full(batch, clip.prepare(call), lambda number, input: replace(input, key=str(number)))


def count(directory: Path) -> int:
    """How many numbers the weights hold, in either layout."""
    files = [open_clip_weights(directory)] if has_own_layout(directory) else weight_files(directory)
    return total(files)


def plan_named(model: str, pretrained: str) -> Plan:
    """A model that open_clip knows by name, with a tag of its weights or a file of them."""
    loads, name, weights = f"{model}, {pretrained}", model.replace("/", "-"), Path(pretrained).expanduser()
    if name not in open_clip.list_models():
        raise CheckpointError(f"{loads}: open_clip has no architecture of that name")
    known = open_clip.get_pretrained_cfg(name, pretrained)
    if not known and weights.is_file():
        return Plan(model, str(weights), total([weights]))
    if not known:
        raise CheckpointError(f"{loads}: `pretrained` is neither one of open_clip's tags nor a file")
    repository, _, file = known.get("hf_hub", "").rpartition("/")
    for name in [file] if file else CLIP_HUB_WEIGHTS:
        path = repository and try_to_load_from_cache(repository, name)
        if isinstance(path, str) and path:
            return Plan(loads, in_cache(Path(path)), total([Path(path)]))
    where = f"the hub's {repository}" if repository else known.get("url", "open_clip's own place")
    return Plan(loads, f"{where} (not in the cache)", PUBLISHED.get(repository))
