"""
TRUE (Honovich et al. 2022, "TRUE: Re-evaluating Factual Consistency Evaluation"): a T5 that was tuned to
write "1" where the hypothesis follows from the premise, and "0" where it does not.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch.nn.utils.rnn import pad_sequence

from models.checkpoints.pretrained import load_words
from models.core.contract import CheckpointError
from models.families.nli.loading import load_network
from models.families.nli.text import LENGTH, Text

FOLLOWS = "1"


class TrueNli:
    """
    A T5 of TRUE's kind.

    Raises:
        CheckpointError: naming the file that is missing or cannot be used.
    """

    def __init__(self, directory: Path, dtype: torch.dtype, device: str) -> None:
        self._words, _ = load_words(directory)
        self._network = load_network(directory, "true", dtype).to(device).eval()
        self._device, config = device, self._network.config
        self._pad, self._start, self._end = (
            config.pad_token_id,
            config.decoder_start_token_id,
            config.eos_token_id,
        )
        answer = self._tokens(FOLLOWS)
        if len(answer) != 1 or not (self._words.id_to_token(answer[0]) or "").endswith(FOLLOWS):
            raise CheckpointError(f'{directory}: its tokenizer has no single token for "{FOLLOWS}"')
        [self._follows] = answer

    def encode(self, premise: str, hypothesis: str) -> Text:
        """`premise: … hypothesis: …`; the premise is cut where both do not fit."""
        before, after = self._tokens(f"premise: {premise}"), self._tokens(f"hypothesis: {hypothesis}")
        kept = before[: max(0, LENGTH - 1 - len(after))] + after[: LENGTH - 1]
        return Text((*kept, self._end), truncated=len(kept) < len(before) + len(after))

    def probabilities(self, texts: Sequence[Text]) -> list[float]:
        """Of "1" as the first token, among the whole vocabulary."""
        rows = [torch.tensor(text.ids) for text in texts]
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        logits = self._network(
            input_ids=pad_sequence(rows, batch_first=True, padding_value=self._pad).to(self._device),
            attention_mask=mask.to(self._device),
            decoder_input_ids=torch.full((len(rows), 1), self._start, device=self._device),
            use_cache=False,
        ).logits
        found: list[float] = logits[:, 0].float().softmax(-1)[:, self._follows].tolist()
        return found

    def _tokens(self, text: str) -> list[int]:
        """Without the `</s>` that ends every text."""
        ids: list[int] = self._words.encode(text, add_special_tokens=False).ids
        return ids
