"""The bytes that a checkpoint of the hub still has to be downloaded."""

import huggingface_hub

from models.checkpoints.files import CLIP_FETCHED, CLIP_FETCHED_WEIGHTS, FETCHED
from models.checkpoints.locate import named
from models.core.contract import CheckpointError
from models.core.reason import in_short


def pending_bytes(repository: str, revision: str = "", *, clip: bool = False) -> int:
    """
    Return the bytes of *repository* that are not in the hub's local cache.

    Args:
        clip: of the same weights in several files only the first that exists counts.

    Raises:
        CheckpointError: the hub can't be reached, or has no such repository.
    """
    patterns = [[*CLIP_FETCHED, weights] for weights in CLIP_FETCHED_WEIGHTS] if clip else [[*FETCHED]]
    try:
        for wanted in patterns:
            files = huggingface_hub.snapshot_download(
                repository, revision=named(revision), allow_patterns=wanted, dry_run=True
            )
            if any(file.filename.endswith((".safetensors", ".bin")) for file in files):
                break
    except Exception as exc:  # the hub's client raises many kinds
        raise CheckpointError(f"{repository}: cannot be found: {in_short(exc)}") from exc
    return sum(file.file_size or 0 for file in files if file.will_download)
