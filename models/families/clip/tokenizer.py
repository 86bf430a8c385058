"""A CLIP's tokenizer: open_clip's own, one that a configuration names, or that of a directory."""

from pathlib import Path
from typing import Any

import open_clip
import torch
from transformers import CLIPTokenizer

from models.checkpoints.files import CLIP_VOCABULARY, TOKENIZER
from models.checkpoints.pretrained import Unknown, load_tokenizer
from models.core.contract import CheckpointError
from models.core.messages import in_short
from models.families.clip.source import Found

MAX_WORDS, MAX_WORD_LENGTH = 50_000, 40  # in the cache of a tokenizer


def named_tokenizer(found: Found, config: dict[str, Any]) -> Any:
    """Return open_clip's tokenizer for a model of its own layout.  Raises `CheckpointError`."""
    name, words = found.open_clip_name, config["text_cfg"].get("hf_tokenizer_name")
    if not words:
        return bounded_cache(open_clip.get_tokenizer(name))
    try:
        return open_clip.get_tokenizer(name, trust_remote_code=False, local_files_only=not found.online)
    except Exception as exc:  # transformers and tokenizers raise many kinds
        where = found.directory or f"{words}, which must be in the hub's local cache"
        raise CheckpointError(f"{name}: no tokenizer from {where}: {in_short(exc)}") from exc


def own_tokenizer(directory: Path, length: int) -> Any:
    """
    Return the tokenizer in a directory of transformers' layout, or CLIP's if the directory has none.

    Args:
        length: tokens of a text, with start and end.
    """
    has_own = any((directory / name).is_file() for name in (TOKENIZER, CLIP_VOCABULARY))
    return OwnTokenizer(load_tokenizer(directory) if has_own else published_tokenizer(), length)


def published_tokenizer() -> Any:
    """
    Return CLIP's tokenizer of transformers, with the pieces that open_clip ships.

    open_clip's own has other ids for some texts: it unescapes HTML, and repairs quotes and letters.
    PickScore has no tokenizer in its repository, and its README names this one.
    """
    words = open_clip.SimpleTokenizer()
    special = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
    pieces = {special.get(piece, piece): number for piece, number in words.encoder.items()}
    return CLIPTokenizer(vocab=pieces, merges=list(words.bpe_ranks), pad_token="<|endoftext|>")


def unknown_token(tokenizer: Any) -> Unknown:
    """Return the unknown token of a tokenizer; open_clip's own has none."""
    inner = getattr(tokenizer, "tokenizer", None)  # of transformers
    return Unknown(None) if inner is None else Unknown.of(inner)


class OwnTokenizer:
    """A tokenizer of transformers with the interface of open_clip's."""

    def __init__(self, tokenizer: Any, length: int) -> None:
        self.tokenizer, self.context_length = tokenizer, length

    def __call__(self, texts: list[str], context_length: int | None = None) -> torch.Tensor:
        """Return ids, one row of *context_length* for each text."""
        length = context_length or self.context_length
        rows: torch.Tensor = self.tokenizer(
            texts, return_tensors="pt", max_length=length, padding="max_length", truncation=True
        ).input_ids
        return rows


class WordCache(dict[str, str]):
    """A bounded cache of words and their parts, for short words only."""

    def __setitem__(self, word: str, parts: str) -> None:
        if len(self) < MAX_WORDS and len(word) <= MAX_WORD_LENGTH:
            super().__setitem__(word, parts)


def bounded_cache(tokenizer: Any) -> Any:
    """Return the tokenizer with a bounded cache; open_clip's own keeps every word."""
    if isinstance(tokenizer, open_clip.SimpleTokenizer):
        tokenizer.cache = WordCache(tokenizer.cache)
    return tokenizer
