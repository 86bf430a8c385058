"""A CLIP's tokenizer: open_clip's own, the one that a configuration names, or a directory's."""

from pathlib import Path
from typing import Any

import open_clip
import torch
from transformers import AutoTokenizer

from models.checkpoints.files import CLIP_WORDS, TOKENIZER
from models.core.contract import CheckpointError
from models.core.reason import in_short
from models.families.clip.source import Found

MAX_WORDS, MAX_WORD_LENGTH = 50_000, 40  # that a tokenizer remembers


def named_tokenizer(found: Found, config: dict[str, Any]) -> Any:
    """open_clip's tokenizer for a model of its own layout.  Raises `CheckpointError`."""
    name, words = found.open_clip_name, config["text_cfg"].get("hf_tokenizer_name")
    if not words:
        return forgetful(open_clip.get_tokenizer(name))
    try:
        return open_clip.get_tokenizer(name, trust_remote_code=False, local_files_only=not found.online)
    except Exception as exc:  # transformers and tokenizers raise many kinds
        where = found.directory or f"{words}, which must be in the hub's local cache"
        raise CheckpointError(f"{name}: no tokenizer from {where}: {in_short(exc)}") from exc


def own_tokenizer(directory: Path, length: int) -> Any:
    """
    The tokenizer in a directory of transformers' layout, or CLIP's as open_clip ships it where the
    directory has none.

    Args:
        length: tokens of a text, with start and end.
    """
    if not any((directory / name).is_file() for name in (TOKENIZER, CLIP_WORDS)):
        return forgetful(open_clip.SimpleTokenizer(context_length=length))
    return OwnTokenizer(directory, length)


class OwnTokenizer:
    """A tokenizer of transformers, called as open_clip's are.  Raises `CheckpointError`."""

    def __init__(self, directory: Path, length: int) -> None:
        self.context_length = length
        try:
            self._words = AutoTokenizer.from_pretrained(
                directory, local_files_only=True, trust_remote_code=False
            )
        except Exception as exc:  # transformers and tokenizers raise many kinds for a broken file
            raise CheckpointError(f"{directory}: its tokenizer cannot be loaded: {in_short(exc)}") from exc

    def __call__(self, texts: list[str], context_length: int | None = None) -> torch.Tensor:
        """Ids, one row of *context_length* for each text."""
        length = context_length or self.context_length
        rows: torch.Tensor = self._words(
            texts, return_tensors="pt", max_length=length, padding="max_length", truncation=True
        ).input_ids
        return rows


class Words(dict[str, str]):
    """Words and the parts they were split into, short words only and not too many."""

    def __setitem__(self, word: str, parts: str) -> None:
        """Keep *word* where there is room."""
        if len(self) < MAX_WORDS and len(word) <= MAX_WORD_LENGTH:
            super().__setitem__(word, parts)


def forgetful(tokenizer: Any) -> Any:
    """The tokenizer; open_clip's own would keep every word of every prompt for good."""
    if isinstance(tokenizer, open_clip.SimpleTokenizer):
        tokenizer.cache = Words(tokenizer.cache)
    return tokenizer
