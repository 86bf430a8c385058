"""CLIP-FlanT5's tokenizer: T5's pieces on both sides of the image slot."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import sentencepiece

from models.checkpoints.pretrained import Unknown
from models.core.contract import CheckpointError

SYSTEM = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives"
    " helpful, detailed, and polite answers to the user's questions."
)
CONTEXT_LENGTH = 2048  # text tokens, counted before the image is spliced in
PAD, EOS, IGNORE = 0, 1, -100
KEPT = 1024  # texts in the cache

Text = tuple[Sequence[int], Sequence[int]]  # token ids before and after the image


class Tokenizer:
    """
    T5's pieces of the text around the image slot.

    SentencePiece is used directly: `</s>`, `<pad>` or `<image>` in a prompt remain text.

    Raises:
        CheckpointError: *path* holds no pieces, or those of another kind of model.
    """

    def __init__(self, path: Path, extra_ids: int = 100) -> None:
        if not path.is_file():
            raise CheckpointError(f"{path}: missing")
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (OSError, RuntimeError) as exc:
            raise CheckpointError(f"{path}: not a SentencePiece model") from exc
        if (self._pieces.pad_id(), self._pieces.eos_id()) != (PAD, EOS):
            raise CheckpointError(
                f"{path}: not a T5 tokenizer: <pad> must be piece {PAD} and </s> piece {EOS}"
            )
        first = [self._pieces.encode(word)[0] for word in ("Yes", "No")]
        if self._pieces.unk_id() in first or first[0] == first[1]:
            raise CheckpointError(f'{path}: the tokens "Yes" and "No" begin with the same piece')
        self._encoded = lru_cache(KEPT)(self._pieces.encode)  # many pictures have the same prompt
        self.space: int = self._pieces.piece_to_id(
            "\u2581"
        )  # alone, before a word without a piece of its own
        self.unknown = Unknown(self._pieces.unk_id(), frozenset((PAD, EOS)))
        self.size: int = self._pieces.vocab_size() + extra_ids

    def encode(self, text: str) -> list[int]:
        """Return ids of *text* with the `</s>` that the reference puts after every chunk."""
        return [*self._encoded(text), EOS]

    def around_image(self, question: str) -> tuple[list[int], list[int]]:
        """
        Return ids before and after the image slot, cut at the context length with the slot as one token.
        """
        before = self.encode(f"{SYSTEM} USER: ")
        after = self.encode(f"\n{question} ASSISTANT: ")
        return before, after[: CONTEXT_LENGTH - len(before) - 1]
