"""`scoregate-server --check`: what a profile would load, from where, and how much memory it takes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import open_clip
import torch
from huggingface_hub import try_to_load_from_cache

from models.base import CheckpointError
from models.checkpoint import DTYPES, parameters, weight_files
from models.clip_loading import CONFIG, weights_in
from models.clip_source import HUB, LOCAL, OWN_WEIGHTS
from models.flant5_layout import read_layout, rename
from models.locate import cached, local
from service.keys import Keys
from service.settings import REMOTE, ModelSettings, Settings

# What repositories hold, in numbers: those of the profiles, so that memory is known before a download.
PUBLISHED = {
    "zhiqiulin/clip-flant5-xl": 3_159_560_192,
    "zhiqiulin/clip-flant5-xxl": 11_459_819_520,
    "timm/vit_large_patch14_clip_224.openai": 427_616_513,
    "timm/vit_large_patch14_clip_336.openai": 427_944_193,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """One model: what is loaded, *where* it lies, and how many *numbers* it holds where that is known."""

    loads: str
    where: str
    numbers: int | None


def check(settings: Settings) -> str:
    """
    A table of the models, without loading one and without a request.

    Raises:
        SettingsError: the file of keys is none.
        CheckpointError: a checkpoint that should be here is not, or can be seen not to work.
    """
    Keys.read(settings.server.api_keys_file)
    rows = [("MODEL", "ROLE", "LOADS", "FROM", "AS", "MEMORY")]
    weights: Counter[str] = Counter()
    unknown = False
    for name, model in settings.models.items():
        found = plan(name, model)
        remote = model.family in REMOTE
        size = (found.numbers or 0) * DTYPES[model.dtype].itemsize
        weights[model.device] += size
        unknown |= not remote and found.numbers is None
        memory = "none here" if remote else gigabytes(size) if found.numbers else "unknown"
        kind = "-" if remote else f"{model.dtype}, {model.device}"
        rows.append((name, str(model.role), found.loads, found.where, kind, memory))
    sums = [f"{device} {gigabytes(size)}" for device, size in weights.items() if size]
    sums += ["more, not known until it is fetched"] * unknown
    total = f"{'; '.join(sums)}. Activations come on top." if sums else "none here."
    return f"{table(rows)}\n\nWeights: {total}\n"


def gigabytes(size: int) -> str:
    """*size* in bytes, as a person reads it."""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows of text in columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def plan(name: str, settings: ModelSettings) -> Plan:
    """What one model would be loaded from.  Raises `CheckpointError`, naming the model."""
    try:
        if settings.family in REMOTE:
            return Plan(settings.model, str(settings.base_url), None)
        torch.device(settings.device)
        if settings.family == "open_clip" and settings.pretrained:
            return plan_named(settings.model, settings.pretrained)
        return plan_checkpoint(settings)
    except (CheckpointError, OSError, RuntimeError) as exc:  # torch says RuntimeError to a wrong device
        raise CheckpointError(f"models.{name}: {str(exc).partition(chr(10))[0]}") from exc


def plan_checkpoint(settings: ModelSettings) -> Plan:
    """A directory, or a repository of the hub, whether in the local cache or not."""
    checkpoint = settings.checkpoint
    if settings.family == "open_clip":
        checkpoint = (settings.model or checkpoint).removeprefix(LOCAL).removeprefix(HUB)
    if found := local(checkpoint):
        return Plan(found.id, str(found.directory), count(settings.family, found.directory))
    at = f"{checkpoint}@{settings.revision or 'main'}"
    if directory := cached(checkpoint, settings.revision):
        return Plan(at, f"{directory} (the hub's cache)", count(settings.family, directory))
    return Plan(at, "the hub (not in its cache)", PUBLISHED.get(checkpoint))


def count(family: str, directory: Path) -> int:
    """How many numbers the weights hold, each once; what can be seen without them is checked."""
    if family == "clip_flant5":
        read_layout(directory)
        held = parameters(weight_files(directory))
        return sum({rename(name): number for name, number in held.items() if rename(name)}.values())
    own = family == "open_clip" and (directory / CONFIG).is_file()
    files = [weights_in(directory)] if own else weight_files(directory)
    return sum(parameters(files).values())


def plan_named(model: str, pretrained: str) -> Plan:
    """A model that open_clip knows by name, with a tag of its weights or a file of them."""
    loads, name, weights = f"{model}, {pretrained}", model.replace("/", "-"), Path(pretrained).expanduser()
    if name not in open_clip.list_models():
        raise CheckpointError(f"{loads}: no name that open_clip knows")
    known = open_clip.get_pretrained_cfg(name, pretrained)
    if not known and weights.is_file():
        return Plan(model, str(weights), sum(parameters([weights]).values()))
    if not known:
        raise CheckpointError(f"{loads}: no weights that open_clip knows, and no file")
    repository, _, file = known.get("hf_hub", "").rpartition("/")
    for name in [file] if file else OWN_WEIGHTS:
        path = repository and try_to_load_from_cache(repository, name)
        if isinstance(path, str) and path:
            return Plan(loads, f"{path} (the hub's cache)", sum(parameters([Path(path)]).values()))
    where = f"the hub's {repository}" if repository else known.get("url", "open_clip's own place")
    return Plan(loads, f"{where} (not in the cache)", PUBLISHED.get(repository))
