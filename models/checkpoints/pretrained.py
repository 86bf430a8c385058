"""Networks and tokenizers of transformers, from the files of a directory and nothing else."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoTokenizer

from models.checkpoints.configuration import read_json
from models.core.contract import CheckpointError
from models.core.reason import in_short
from models.sizing.dry_run import is_dry


def load_pretrained(kind: Any, directory: Path, dtype: torch.dtype, place: Path) -> Any:
    """
    The network of a class of transformers, with every weight.

    transformers goes on with random numbers in place of weights that are missing or of another shape.  In a
    dry run no weights are read and none are missing.

    Args:
        place: what an error names.

    Raises:
        CheckpointError: it cannot be loaded, or lacks weights.
    """
    try:
        if is_dry():
            return from_config(kind, directory, dtype)
        network, loaded = kind.from_pretrained(
            directory,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            ignore_mismatched_sizes=True,  # or an error that names none of them would be raised
            output_loading_info=True,
        )
    except Exception as exc:  # a broken configuration or file fails in many ways
        raise CheckpointError(f"{place}: cannot be loaded: {in_short(exc)}") from exc
    absent = sorted({*loaded["missing_keys"], *(name for name, *_ in loaded["mismatched_keys"])})
    if absent:
        raise CheckpointError(f"{place}: weights are missing or of another shape: {', '.join(absent[:4])}")
    return network


def from_config(kind: Any, directory: Path, dtype: torch.dtype) -> Any:
    """The network that a directory's configuration describes, of a class of transformers."""
    config = AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    make = kind._from_config if hasattr(kind, "_from_config") else kind.from_config  # one class, or an Auto
    return make(config, dtype=dtype)


def load_processor(kind: Any, path: Path) -> Any:
    """What makes tensors of pictures, a class of transformers, as a file says.  Raises `CheckpointError`."""
    read_json(path)
    try:
        return kind.from_pretrained(path.parent, local_files_only=True)
    except Exception as exc:  # a broken file fails in many ways
        raise CheckpointError(f"{path}: {in_short(exc)}") from exc


def load_words(directory: Path) -> tuple[Tokenizer, int]:
    """The tokenizer, thread-safe, and the most tokens that it says fit.  Raises `CheckpointError`."""
    try:
        loaded = AutoTokenizer.from_pretrained(directory, local_files_only=True, trust_remote_code=False)
    except Exception as exc:  # transformers and tokenizers raise many kinds for a broken file
        raise CheckpointError(f"{directory}: its tokenizer cannot be loaded: {in_short(exc)}") from exc
    if not loaded.is_fast:
        raise CheckpointError(f"{directory}: needs a fast tokenizer")
    words = thread_safe(loaded)
    words.encode_special_tokens = True  # "[SEP]" in a prompt is text
    return words, loaded.model_max_length


def thread_safe(tokenizer: Any) -> Tokenizer:
    """A copy of a fast tokenizer's own: `encode` of a fast one sets state and is not thread-safe."""
    words = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    words.no_padding()
    words.no_truncation()
    return words
