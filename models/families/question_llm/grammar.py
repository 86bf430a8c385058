"""Answers bound to a JSON schema: tokens that would leave it are masked (llguidance, as in vLLM)."""

import json
from collections.abc import Mapping
from typing import Any

import llguidance.hf
import torch

from models.core.contract import CheckpointError
from models.core.reason import in_short


class Allowed:
    """Which tokens may come next under a JSON schema."""

    def __init__(self, words: Any, schema: Mapping[str, Any]) -> None:
        # Without spaces: a small model that is forced off its way may go on writing them for ever.
        # Without forcing: what has but one way on may still be said in the model's own tokens.
        bound = {**schema, "x-guidance": {"whitespace_flexible": False}}
        grammar = f'%llguidance {{"no_forcing": true}}\nstart: %json {json.dumps(bound)}'
        self._matcher = llguidance.LLMatcher(words, grammar)

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits (vocabulary), minus infinity for what would leave the schema."""
        bias = torch.frombuffer(bytearray(self._matcher.compute_logit_bias()), dtype=torch.uint8)
        return logits.masked_fill(bias == 0, -torch.inf)

    def take(self, token: int) -> None:
        """Go on from *token*."""
        self._matcher.consume_token(token)


def load_grammar_words(tokenizer: Any, vocabulary: int) -> Any:
    """The tokenizer as llguidance sees it.  Raises `CheckpointError`."""
    try:
        return llguidance.hf.from_tokenizer(tokenizer, n_vocab=vocabulary)
    except Exception as exc:  # it raises many kinds for a tokenizer it can't take
        raise CheckpointError(f"the tokenizer cannot be used with a JSON schema: {in_short(exc)}") from exc
