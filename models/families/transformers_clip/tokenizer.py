"""The tokenizer of a CLIP of transformers: ids of a fixed length."""

import copy
from pathlib import Path

import torch

from models.checkpoints.pretrained import Unknown, load_tokenizer


class Tokenizer:
    """
    The tokenizer of a directory.  Thread-safe.

    Args:
        length: tokens of every text; a longer one is truncated, a shorter one padded.
        lower: convert to lowercase, which not every tokenizer of a SigLIP 2 does.
        masked: return the attention mask.

    Raises:
        CheckpointError: it cannot be loaded.
    """

    def __init__(self, directory: Path, length: int, *, lower: bool, masked: bool) -> None:
        self._padded = load_tokenizer(directory)
        # A tokenizer keeps its last settings, so each use has its own copy.
        self._whole = copy.deepcopy(self._padded)
        self._unknown = Unknown.of(self._padded)
        self.length, self._lower, self._masked = length, lower, masked

    def __call__(self, text: str) -> tuple[tuple[torch.Tensor, ...], bool, float]:
        """
        Return the ids (length,), with the mask if there is one; True if the text was truncated; and the share
        of unknown tokens.
        """
        text = text.lower() if self._lower else text
        row = self._padded(
            text,
            max_length=self.length,
            padding="max_length",
            truncation=True,
            return_attention_mask=True,
            return_tensors="pt",
        )
        whole = self._whole(text, max_length=self.length + 1, truncation=True).input_ids
        ids, mask = row.input_ids[0], row.attention_mask[0]
        tensors = (ids, mask) if self._masked else (ids,)
        return tensors, len(whole) > self.length, self._unknown.share(whole)
