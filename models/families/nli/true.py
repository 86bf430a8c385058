"""
TRUE (Honovich et al. 2022, "TRUE: Re-evaluating Factual Consistency Evaluation"): a T5 that was tuned to
write "1" if the hypothesis follows from the premise, else "0".
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import T5ForConditionalGeneration

from models.checkpoints.pretrained import load_fast_tokenizer, load_pretrained
from models.core.contract import CheckpointError
from models.families.nli.text import LENGTH, Text
from models.families.padding import padded

FOLLOWS = "1"


class TrueNli:
    """A T5 of TRUE's kind.  Raises `CheckpointError`."""

    def __init__(self, directory: Path, dtype: torch.dtype, device: str) -> None:
        self._network = load_pretrained(T5ForConditionalGeneration, directory, dtype).to(device).eval()
        self._device, config = device, self._network.config
        self._tokenizer, _, self._unknown = load_fast_tokenizer(directory, config.vocab_size)
        self._pad, self._start, self._end = (
            config.pad_token_id,
            config.decoder_start_token_id,
            config.eos_token_id,
        )
        answer = self._tokens(FOLLOWS)
        if len(answer) != 1 or not (self._tokenizer.id_to_token(answer[0]) or "").endswith(FOLLOWS):
            raise CheckpointError(f'{directory}: its tokenizer has no single token for "{FOLLOWS}"')
        [self._follows] = answer

    def encode(self, premise: str, hypothesis: str) -> Text:
        """Tokenise `premise: … hypothesis: …`; the premise is truncated."""
        before, after = self._tokens(f"premise: {premise}"), self._tokens(f"hypothesis: {hypothesis}")
        kept = before[: max(0, LENGTH - 1 - len(after))] + after[: LENGTH - 1]
        truncated = len(kept) < len(before) + len(after)
        return Text((*kept, self._end), truncated=truncated, unknown=self._unknown.share(kept))

    def probabilities(self, texts: Sequence[Text]) -> list[float]:
        """Return the probability of "1" as the first token for each text."""
        ids, mask = padded([text.ids for text in texts], self._device, self._pad)
        logits = self._network(
            input_ids=ids,
            attention_mask=mask,
            decoder_input_ids=torch.full((len(texts), 1), self._start, device=self._device),
            use_cache=False,
        ).logits
        found: list[float] = logits[:, 0].float().softmax(-1)[:, self._follows].tolist()
        return found

    def _tokens(self, text: str) -> list[int]:
        """Return ids without the `</s>` at the end of every text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids
