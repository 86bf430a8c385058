"""A causal language model of transformers, with all of its weights."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from models.checkpoints.pretrained import load_pretrained
from models.contract import CheckpointError


def load_network(directory: Path, dtype: torch.dtype) -> Any:
    """The network with every weight from *directory*.  Raises `CheckpointError`."""
    network, absent = load_pretrained(AutoModelForCausalLM, directory, dtype, directory)
    if absent:
        raise CheckpointError(f"{directory}: weights are missing or of another shape")
    return network


def end_tokens(network: Any, tokenizer: Any) -> frozenset[int]:
    """Ids that end an answer: chat models may have several."""
    ends = network.generation_config.eos_token_id
    if ends is None:
        ends = tokenizer.eos_token_id
    return frozenset(ends if isinstance(ends, list) else [ends])
