"""A causal language model of transformers, with all of its weights."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from models.contract import CheckpointError
from models.reason import in_short


def load_network(directory: Path, dtype: torch.dtype) -> Any:
    """The network with every weight from *directory*.  Raises `CheckpointError`."""
    try:
        network, loaded = AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    except Exception as exc:  # a broken configuration or file fails in many ways
        raise CheckpointError(f"{directory}: cannot be loaded: {in_short(exc)}") from exc
    if loaded["missing_keys"] or loaded["mismatched_keys"]:
        # transformers would go on with random weights in their place
        raise CheckpointError(f"{directory}: weights are missing or of another shape")
    return network


def end_tokens(network: Any, tokenizer: Any) -> frozenset[int]:
    """Ids that end an answer: chat models may have several."""
    ends = network.generation_config.eos_token_id
    if ends is None:
        ends = tokenizer.eos_token_id
    return frozenset(ends if isinstance(ends, list) else [ends])
