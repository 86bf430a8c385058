"""Texts as a CLIP of transformers takes them: ids of a fixed length."""

import copy
from pathlib import Path

import torch
from transformers import AutoTokenizer

from models.core.contract import CheckpointError
from models.core.reason import in_short


class Words:
    """
    The tokenizer of a directory.  Thread-safe.

    Args:
        length: tokens of every text; a longer one is cut, a shorter one padded.
        lower: whether the model knows small letters only.  Not every tokenizer of a SigLIP 2 sees to it.
        masked: whether the model is told which tokens are padding.

    Raises:
        CheckpointError: it cannot be loaded.
    """

    def __init__(self, directory: Path, length: int, *, lower: bool, masked: bool) -> None:
        try:
            self._padded = AutoTokenizer.from_pretrained(
                directory, local_files_only=True, trust_remote_code=False
            )
        except Exception as exc:  # transformers and tokenizers raise many kinds for a broken file
            raise CheckpointError(f"{directory}: its tokenizer cannot be loaded: {in_short(exc)}") from exc
        # A tokenizer keeps its last settings, so each way of calling it has its own.
        self._whole = copy.deepcopy(self._padded)
        self.length, self._lower, self._masked = length, lower, masked

    def __call__(self, text: str) -> tuple[tuple[torch.Tensor, ...], bool]:
        """The ids, (length,), with the mask where there is one; and whether the text was cut."""
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
        return (ids, mask) if self._masked else (ids,), len(whole) > self.length
