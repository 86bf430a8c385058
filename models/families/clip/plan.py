"""The plan of a CLIP for `--check`."""

from pathlib import Path

import open_clip
import torch
from huggingface_hub import try_to_load_from_cache

from models.checkpoints.files import CLIP_HUB_WEIGHTS, open_clip_weights, weight_files
from models.checkpoints.hub_file import hub_file
from models.checkpoints.plan import in_cache, plan_checkpoint
from models.checkpoints.weights import num_parameters
from models.core.contract import CheckpointError
from models.core.family import Plan
from models.families.clip import ClipSettings
from models.families.clip.source import HUB, LOCAL, has_own_layout

# Parameters of the repositories that the profiles name, so that memory is known before a download.
PUBLISHED = {
    "timm/vit_large_patch14_clip_224.openai": 427_616_513,
    "timm/vit_large_patch14_clip_336.openai": 427_944_193,
    "xswu/HPSv2": 986_109_441,
    "yuvalkirstain/PickScore_v1": 986_109_441,
}


def plan(settings: ClipSettings) -> Plan:
    """Return the plan of a CLIP.  Same errors as `models.checkpoints.plan.plan`."""
    torch.device(settings.device)
    if settings.pretrained:
        return plan_named(settings.model, settings.pretrained)
    checkpoint = (settings.model or settings.checkpoint).removeprefix(LOCAL).removeprefix(HUB)
    return plan_checkpoint(checkpoint, settings.revision, count, PUBLISHED)


def count(directory: Path) -> int:
    """Return the number of parameters in a directory of either layout."""
    own = has_own_layout(directory)
    return num_parameters([open_clip_weights(directory)] if own else weight_files(directory))


def plan_named(model: str, pretrained: str) -> Plan:
    """Return the plan of a name of open_clip, with a tag of its weights or a file of them."""
    loads, name, weights = f"{model}, {pretrained}", model.replace("/", "-"), Path(pretrained).expanduser()
    if name not in open_clip.list_models():
        raise CheckpointError(f"{loads}: open_clip has no architecture of that name")
    if file := hub_file(pretrained):
        if held := file.cached():
            return Plan(f"{model}, {file.name}", in_cache(held), num_parameters([held]))
        where = f"the hub's {file.shown} (not in the cache)"
        return Plan(f"{model}, {file.name}", where, PUBLISHED.get(file.repository))
    known = open_clip.get_pretrained_cfg(name, pretrained)
    if not known and weights.is_file():
        return Plan(model, str(weights), num_parameters([weights]))
    if not known:
        raise CheckpointError(f"{loads}: `pretrained` is neither one of open_clip's tags nor a file")
    repository, _, file = known.get("hf_hub", "").rpartition("/")
    for name in [file] if file else CLIP_HUB_WEIGHTS:
        path = repository and try_to_load_from_cache(repository, name)
        if isinstance(path, str) and path:
            return Plan(loads, in_cache(Path(path)), num_parameters([Path(path)]))
    where = f"the hub's {repository}" if repository else known.get("url", "open_clip's own place")
    return Plan(loads, f"{where} (not in the cache)", PUBLISHED.get(repository), repository=repository)
