"""A causal language model of transformers, with all of its weights."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from models.checkpoints.pretrained import load_pretrained


def load_network(directory: Path, dtype: torch.dtype) -> Any:
    """The network with every weight from *directory*.  Raises `CheckpointError`."""
    return load_pretrained(AutoModelForCausalLM, directory, dtype, directory)


def end_tokens(network: Any, tokenizer: Any) -> frozenset[int]:
    """Ids that end an answer: chat models may have several."""
    ends = network.generation_config.eos_token_id
    if ends is None:
        ends = tokenizer.eos_token_id
    return frozenset(ends if isinstance(ends, list) else [ends])
