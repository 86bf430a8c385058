"""Load an NLI checkpoint of transformers: its network with every weight, and its tokenizer."""

from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForSequenceClassification, AutoTokenizer, T5ForConditionalGeneration

from models.checkpoints.configuration import read_json
from models.checkpoints.files import CONFIG, weight_files
from models.checkpoints.pretrained import load_pretrained, thread_safe
from models.contract import CheckpointError
from models.reason import in_short

Kind = Literal["classifier", "true"]

NETWORKS = {"classifier": AutoModelForSequenceClassification, "true": T5ForConditionalGeneration}


def kind_of(directory: Path) -> Kind:
    """A T5 that writes is one of TRUE's kind; all others classify.  Raises `CheckpointError`."""
    config = read_json(directory / CONFIG)
    writes = "T5ForConditionalGeneration" in (config.get("architectures") or [])
    return "true" if writes else "classifier"


def safetensors_files(directory: Path) -> list[Path]:
    """The files of the weights.  Raises `CheckpointError` where they are not safetensors."""
    files = weight_files(directory)
    for path in files:
        if path.suffix != ".safetensors":
            raise CheckpointError(f"{path}: an NLI model's weights are read from safetensors only")
    return files


def load_network(directory: Path, kind: Kind, dtype: torch.dtype) -> Any:
    """The network with every weight from *directory*.  Raises `CheckpointError`."""
    files = safetensors_files(directory)
    network, absent = load_pretrained(NETWORKS[kind], directory, dtype, files[0])
    if absent:
        raise CheckpointError(f"{files[0]}: weights are missing or of another shape: {', '.join(absent[:4])}")
    return network


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
