"""
The source of a CLIP: a directory, a repository on the hub, or a name of open_clip.

Only a hub id, or a name with a tag of published weights, causes requests; only data is downloaded.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import open_clip
import torch
from huggingface_hub import try_to_load_from_cache

from models.checkpoints.files import (
    CLIP_DATA_SUFFIXES,
    OPEN_CLIP_CONFIG,
    open_clip_weights,
    weight_files,
)
from models.checkpoints.info import content_of, digest_of
from models.checkpoints.locate import HUB_ID, download, hub_file, locate, path_of
from models.checkpoints.plan import in_cache, plan_checkpoint
from models.checkpoints.weights import mismatch, num_parameters, read_file
from models.core.contract import CheckpointError
from models.core.family import Plan
from models.core.messages import in_short, quiet
from models.families.clip import (
    CLIP_FETCHED,
    CLIP_FETCHED_WEIGHTS,
    CLIP_HUB_WEIGHTS,
    HPSV2,
    PICKSCORE,
    ClipSettings,
)

LOCAL_PREFIX, HUB_PREFIX = "local-dir:", "hf-hub:"  # open_clip's prefixes
QUICKGELU_SUFFIX = "-quickgelu"  # open_clip's architectures with this activation end so


@dataclass(frozen=True, slots=True)
class Found:
    """
    The source of a CLIP: a *directory*, or a *name* of open_clip with its *pretrained* weights.

    Requests are made only if it is *online*: from a hub, or by a tag of published weights.  *files* as in
    `ModelInfo`.
    """

    id: str
    revision: str
    files: str
    directory: Path | None = None
    name: str = ""
    pretrained: str = ""
    online: bool = False

    @property
    def place(self) -> Path | str:
        """The directory or the name, for messages."""
        return self.directory or self.name

    @property
    def open_clip_name(self) -> str:
        """The name to pass to open_clip."""
        return f"{LOCAL_PREFIX}{self.directory}" if self.directory else self.name

    def weights(self) -> Path | None:
        """
        Return the file that open_clip would read the weights from; None for a tag or the layout of
        transformers.

        Raises:
            CheckpointError: the directory holds no such file, or several are possible.
        """
        if self.directory is None:
            return None if self.online else Path(self.pretrained)
        return open_clip_weights(self.directory) if has_own_layout(self.directory) else None


def has_own_layout(directory: Path) -> bool:
    """Return True if open_clip saved *directory*."""
    return (directory / OPEN_CLIP_CONFIG).is_file()


def find(model: str, pretrained: str | None, revision: str) -> Found:
    """
    Find *model*: a directory, `demo:NAME`, a hub id, or a name of open_clip.

    Raises:
        CheckpointError: there is no such thing, or the hub can't be reached.
    """
    place = Path(model.removeprefix(LOCAL_PREFIX)).expanduser()
    if not place.is_dir() and (name := model.replace("/", "-")) in open_clip.list_models():
        return find_name(name, pretrained or "", revision)
    if pretrained and model:
        raise CheckpointError(f"{model}: `pretrained` needs a name of open_clip, which this is not")
    if model and (place.is_dir() or model.startswith("demo:")):
        found = locate(model.removeprefix(LOCAL_PREFIX))
        content = content_of(found.directory, data_files(found.directory))
        return Found(found.id, revision or content, content, found.directory)
    repository = model.removeprefix(HUB_PREFIX)
    if model.startswith(LOCAL_PREFIX) or not HUB_ID.fullmatch(repository):
        raise CheckpointError(
            f"{model or '(no model)'}: neither a directory, nor a hub id, nor a name of open_clip"
        )
    directory = fetch(repository, revision)
    return Found(repository, directory.name, directory.name, directory, online=True)  # a commit names it


def find_name(name: str, pretrained: str, revision: str) -> Found:
    """Find a model of open_clip by name.  Raises `CheckpointError` unless *pretrained* is a tag or a file."""
    path = path_of(pretrained)
    if pretrained and open_clip.is_pretrained_cfg(name, pretrained):
        return Found(name, revision or pretrained, pretrained, name=name, pretrained=pretrained, online=True)
    if pretrained and path.is_file():
        content = digest_of([path])
        return Found(name, revision or content, content, name=name, pretrained=str(path))
    tags = ", ".join(open_clip.list_pretrained_tags_by_model(name)) or "none"
    reason = f"{pretrained} is neither a tag nor a file" if pretrained else "`pretrained` is not set"
    raise CheckpointError(f"{name}: {reason}; open_clip's tags for it: {tags}")


def fetch(repository: str, revision: str) -> Path:
    """Download the configuration of a repository and the first supported weights in it."""
    for patterns in CLIP_FETCHED:
        directory = download(repository, revision, patterns)
        if any(directory.glob(patterns[-1])):
            return directory
    raise CheckpointError(f"{repository}: holds no weights (looked for {', '.join(CLIP_FETCHED_WEIGHTS)})")


def data_files(directory: Path) -> list[Path]:
    """Return all files with data in a local directory."""
    return [path for path in sorted(directory.iterdir()) if path.suffix in CLIP_DATA_SUFFIXES]


def fault(found: Found, exc: Exception) -> str:
    """Describe in one line why *found* could not be loaded, which raised *exc*."""
    try:
        file = found.weights()
        wrong = open_clip_mismatch(found, file) if file else ""
    except CheckpointError as unreadable:
        return str(unreadable)
    if not wrong:
        return f"{found.place}: {in_short(exc)}"
    network = OPEN_CLIP_CONFIG if found.directory else found.name
    return f"{file}: the weights don't fit {network}: {wrong}"


def open_clip_mismatch(found: Found, file: Path) -> str:
    """
    Describe why the weights in *file* do not fit the network of *found*; empty if they fit or it cannot be
    built.

    Raises:
        CheckpointError: the file cannot be read.
    """
    read_file(file, "cpu")
    try:
        with quiet():
            network = open_clip.create_model(found.open_clip_name, load_weights=False, pretrained_text=False)
            tensors = converted(network, file)
    except Exception:  # the reason why loading failed, already in the message
        return ""
    return mismatch(tensors, network.state_dict())


def converted(network: Any, file: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of *file* as open_clip would load them: renamed and resized."""
    held: dict[str, torch.Tensor] = {}
    network.load_state_dict = lambda tensors, **_: held.update(tensors)
    open_clip.load_checkpoint(network, str(file))
    return held


# Parameters of the repositories that the profiles name, so that memory is known before a download.
PARAMETERS = {
    "timm/vit_large_patch14_clip_224.openai": 427_616_513,
    "timm/vit_large_patch14_clip_336.openai": 427_944_193,
    HPSV2: 986_109_441,
    PICKSCORE: 986_109_441,
}


def plan(settings: ClipSettings) -> Plan:
    """Return the plan of a CLIP.  Same errors as `models.checkpoints.plan.plan`."""
    torch.device(settings.device)
    if settings.pretrained:
        return plan_named(settings.model, settings.pretrained)
    checkpoint = (settings.model or settings.checkpoint).removeprefix(LOCAL_PREFIX).removeprefix(HUB_PREFIX)
    return plan_checkpoint(checkpoint, settings.revision, count, PARAMETERS)


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
        return Plan(f"{model}, {file.name}", where, PARAMETERS.get(file.repository))
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
    return Plan(loads, f"{where} (not in the cache)", PARAMETERS.get(repository), repository=repository)


def settings_of(name: str) -> dict[str, str] | None:
    """
    Return the settings of open_clip's `NAME:TAG`; without a tag it is `openai`, if there is one.

    None if open_clip has no architecture NAME.  Raises `CheckpointError` for another tag or activation.
    """
    model, _, tag = name.partition(":")
    if model not in open_clip.list_models():
        return None
    tags = open_clip.list_pretrained_tags_by_model(model)
    tag = tag or ("openai" if "openai" in tags else "")
    if tag not in tags:
        raise CheckpointError(
            f"--model {name}: add one of open_clip's tags, {model}:TAG; it has {', '.join(tags)}"
        )
    check_activation(name, model, tag)
    return {"model": model, "pretrained": tag}


def check_activation(name: str, model: str, tag: str) -> None:
    """Reject weights of another activation; open_clip warns after their download."""
    quick = bool(open_clip.get_pretrained_cfg(model, tag).get("quick_gelu"))
    if quick == bool((open_clip.get_model_config(model) or {}).get("quick_gelu")):
        return
    other = f"{model}{QUICKGELU_SUFFIX}" if quick else model.removesuffix(QUICKGELU_SUFFIX)
    use = f"; use {other}:{tag}" if other in open_clip.list_models() else ""
    raise CheckpointError(
        f"--model {name}: the weights {tag} were trained {'with' if quick else 'without'} QuickGELU, unlike"
        f" this architecture{use}"
    )
