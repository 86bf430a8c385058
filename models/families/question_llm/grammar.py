"""Answers constrained to a JSON schema: tokens that would violate it are masked (llguidance, as in vLLM)."""

import json
from collections.abc import Mapping
from typing import Any

import llguidance.hf
import torch

from models.core.contract import CheckpointError
from models.core.messages import in_short


class Allowed:
    """The tokens that may come next under a JSON schema."""

    def __init__(self, tokenizer: Any, schema: Mapping[str, Any]) -> None:
        # Without spaces: a small model under constraints may repeat them forever.
        # Without forcing: text with only one continuation keeps the model's own tokens.
        bound = {**schema, "x-guidance": {"whitespace_flexible": False}}
        grammar = f'%llguidance {{"no_forcing": true}}\nstart: %json {json.dumps(bound)}'
        self._matcher = llguidance.LLMatcher(tokenizer, grammar)

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the logits (vocabulary), minus infinity for tokens that would violate the schema."""
        bias = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)
        return logits.masked_fill(bias == 0, -torch.inf)

    def take(self, token: int) -> None:
        """Advance by *token*."""
        self._matcher.consume_token(token)


def load_grammar_tokenizer(tokenizer: Any, vocabulary: int) -> Any:
    """Convert the tokenizer for llguidance.  Raises `CheckpointError`."""
    try:
        return llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocabulary)
    except Exception as exc:  # it raises many kinds for a tokenizer it can't take
        raise CheckpointError(f"the tokenizer cannot be used with a JSON schema: {in_short(exc)}") from exc
