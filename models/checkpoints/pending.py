"""The bytes that a checkpoint of the hub still has to be downloaded."""

import huggingface_hub

from models.checkpoints.files import CLIP_FETCHED, CLIP_FETCHED_WEIGHTS, FETCHED
from models.checkpoints.locate import cache_folder, hub_error, is_writable, named

ANSWER_S = 10.0


def pending_bytes(repository: str, revision: str = "", *, clip: bool = False) -> int:
    """
    Return the bytes of *repository* that are not in the hub's local cache.

    Args:
        clip: of the same weights in several files only the first that exists counts.

    Raises:
        CheckpointAway: the hub can't be reached now.
        CheckpointError: it has no such repository, it may not be called, or its cache cannot be written.
    """
    if not is_writable(cache_folder()):
        raise hub_error(f"{repository}: cannot be downloaded", repository, PermissionError())
    wanted_revision = named(revision)
    patterns = [[*CLIP_FETCHED, weights] for weights in CLIP_FETCHED_WEIGHTS] if clip else [[*FETCHED]]
    try:
        # Unlike the list of files, this is not retried: a hub that is away is known at once.
        commit = huggingface_hub.model_info(repository, revision=wanted_revision, timeout=ANSWER_S).sha
        for wanted in patterns:
            files = huggingface_hub.snapshot_download(
                repository, revision=commit, allow_patterns=wanted, dry_run=True
            )
            if any(file.filename.endswith((".safetensors", ".bin")) for file in files):
                break
    except Exception as exc:  # the hub's client raises many kinds
        raise hub_error(f"{repository}: cannot be found", repository, exc) from exc
    return sum(file.file_size or 0 for file in files if file.will_download)
