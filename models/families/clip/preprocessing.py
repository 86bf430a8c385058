"""The inputs of a CLIP's towers: pixels and tokens, as its checkpoint describes them."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import open_clip
import PIL.Image
import torch
from open_clip.transform import PreprocessCfg
from tokenizers import Tokenizer
from transformers import CLIPTokenizer

from models.checkpoints.files import CLIP_VOCABULARY, TOKENIZER
from models.checkpoints.pretrained import Unknown, load_tokenizer, thread_safe
from models.core.contract import CheckpointError
from models.core.messages import in_short
from models.families.clip.source import Found
from models.images.pixels import Preprocessor, resample, rows_go_first, taps_of


@dataclass(frozen=True, slots=True)
class Preprocessing(Preprocessor):
    """
    Pixels (3, height, width).

    Attributes:
        size: height and width.
        resize_mode: "shortest" edge, and the centre is cropped; "longest" edge, and the rest is filled; or
            "squash".
        bilinear: resize so, else bicubic.
        fill: of pixels around the picture, in each colour.
    """

    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resize_mode: str = "shortest"
    bilinear: bool = False
    fill: int = 0

    @classmethod
    def of(cls, config: dict[str, Any]) -> Self:
        """Return the preprocessing that open_clip's `preprocess_cfg` of a tower describes."""
        given = PreprocessCfg(**config)
        height, width = np.broadcast_to(given.size, 2).tolist()
        # open_clip resizes by the shortest edge to a picture that is not square with its default only.
        bicubic = given.resize_mode == "shortest" and height != width
        bilinear = given.interpolation == "bilinear" and not bicubic
        mean, std = (tuple(np.broadcast_to(each, 3).tolist()) for each in (given.mean, given.std))
        return cls((height, width), mean, std, given.resize_mode, bilinear, given.fill_color)

    def resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Resize, and crop or fill.  Raises `ValueError` for a strip without pixels then."""
        wanted = self._resized(*rgb.size)
        if not all(wanted):
            raise ValueError(f"the resized picture would have {wanted[0]}x{wanted[1]} pixels")
        axes = zip(rgb.size, wanted, self.size[::-1], strict=True)
        (across, columns), (down, rows) = (self._centre(*axis) for axis in axes)
        pixels = resample(rgb, across, down, rows_first=rows_go_first(rgb.size, wanted))
        if pixels.shape[1:] != self.size:
            whole = np.full((3, *self.size), self.fill, np.uint8)
            whole[:, rows, columns] = pixels
            pixels = whole
        return torch.from_numpy(pixels)

    def _resized(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height of the resized picture, before it is cropped or filled."""
        rows, columns = self.size
        if self.resize_mode == "squash":
            return columns, rows
        if self.resize_mode == "shortest" and rows == columns:
            longer = int(rows * max(width, height) / min(width, height))
            return (rows, longer) if width <= height else (longer, rows)
        ratios = height / rows, width / columns
        ratio = max(ratios) if self.resize_mode == "longest" else min(ratios)
        return round(width / ratio), round(height / ratio)

    def _centre(self, length: int, wanted: int, side: int) -> tuple[Any, slice]:
        """Return the taps along one axis, cropped to *side*, and the place of their results on it."""
        start, left = round(max(0, wanted - side) / 2), max(0, side - wanted) // 2
        taps = taps_of(length, wanted, self.bilinear, part=(start, start + side))
        return taps, slice(left, left + min(side, wanted))


CACHED_WORDS, CACHED_WORD_CHARACTERS = 50_000, 40


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


def own_tokenizer(directory: Path, length: int) -> "OwnTokenizer":
    """
    Return the tokenizer in a directory of transformers' layout, or CLIP's if the directory has none.

    Args:
        length: tokens of a text, with start and end.

    Raises:
        CheckpointError: the tokenizer cannot be used.
    """
    has_own = any((directory / name).is_file() for name in (TOKENIZER, CLIP_VOCABULARY))
    own = OwnTokenizer.of(directory, load_tokenizer(directory)) if has_own else published_tokenizer()
    return replace(own, context_length=length)


@cache
def published_tokenizer() -> "OwnTokenizer":
    """
    Return CLIP's tokenizer of transformers, with the pieces that open_clip ships.

    open_clip's own has other ids for some texts: it unescapes HTML, and repairs quotes and letters.
    PickScore has no tokenizer in its repository, and its README names this one.
    """
    words = open_clip.SimpleTokenizer()
    special = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
    pieces = {special.get(piece, piece): number for piece, number in words.encoder.items()}
    loaded = CLIPTokenizer(vocab=pieces, merges=list(words.bpe_ranks), pad_token="<|endoftext|>")
    return OwnTokenizer.of(Path(), loaded)


def unknown_token(tokenizer: Any) -> Unknown:
    """Return the unknown token of a tokenizer; open_clip's own has none."""
    if isinstance(tokenizer, OwnTokenizer):
        return tokenizer.unknown
    inner = getattr(tokenizer, "tokenizer", None)  # transformers' own
    return Unknown(None) if inner is None else Unknown.of(inner)


@dataclass(frozen=True, slots=True)
class OwnTokenizer:
    """
    A tokenizer of transformers with the interface of open_clip's; thread-safe, for texts of any length.

    transformers' own keeps the last length as a setting.
    """

    words: Tokenizer
    unknown: Unknown
    pad: int
    pad_side: str
    cut_side: str
    context_length: int = 77

    @classmethod
    def of(cls, directory: Path, loaded: Any) -> Self:
        """Return the tokenizer that was loaded from *directory*.  Raises `CheckpointError`."""
        if not loaded.is_fast:
            raise CheckpointError(f"{directory}: needs a fast tokenizer")
        if loaded.pad_token_id is None:
            raise CheckpointError(f"{directory}: its tokenizer has no padding token")
        sides = loaded.padding_side, loaded.truncation_side
        return cls(thread_safe(loaded), Unknown.of(loaded), loaded.pad_token_id, *sides)

    def __call__(self, texts: list[str], context_length: int | None = None) -> torch.Tensor:
        """Return ids, one row of *context_length* for each text."""
        length = context_length or self.context_length
        return torch.tensor([self._row(text, length) for text in texts])

    def _row(self, text: str, length: int) -> list[int]:
        encoded = self.words.encode(text, add_special_tokens=False)
        encoded.truncate(length - self.words.num_special_tokens_to_add(False), direction=self.cut_side)
        row = self.words.post_process(encoded)
        row.pad(length, direction=self.pad_side, pad_id=self.pad)
        ids: list[int] = row.ids
        return ids


class WordCache(dict[str, str]):
    """A bounded cache of words and their parts, for short words only."""

    def __setitem__(self, word: str, parts: str) -> None:
        if len(self) < CACHED_WORDS and len(word) <= CACHED_WORD_CHARACTERS:
            super().__setitem__(word, parts)


def bounded_cache(tokenizer: Any) -> Any:
    """Return the tokenizer with a bounded cache; open_clip's own keeps every word."""
    if isinstance(tokenizer, open_clip.SimpleTokenizer):
        tokenizer.cache = WordCache(tokenizer.cache)
    return tokenizer
