"""
The inputs of a vision-language model of Qwen: chats as tokens, and pictures as patches.

Templates, tokenizers and image processors are those of the checkpoint, run by transformers.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import PIL.Image
import torch
from tokenizers import AddedToken, Tokenizer
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

from models.checkpoints.files import CONFIG, PREPROCESSOR, PROCESSOR, TOKENIZER_FILES, read_json
from models.checkpoints.pretrained import load_processor, load_tokenizer, thread_safe
from models.core.contract import CheckpointError, ModelError
from models.core.messages import in_short
from models.images.image import Image

# --- texts --------------------------------------------------------------------------------------

CHAT_TEMPLATE = "chat_template.json"  # the processor has it, and the tokenizer the same one
BASE_FILES = (CONFIG, PREPROCESSOR, PROCESSOR, CHAT_TEMPLATE, *TOKENIZER_FILES)
PLACEHOLDER = "\ufffctext\ufffc"  # stands for a text while the chat template is rendered


class VlTokenizer:
    """
    The tokenizer and the chat template of a checkpoint; thread-safe.

    Args:
        more: special tokens, which follow the tokenizer's own.

    Attributes:
        special: reads special tokens.
        plain: reads them as text: "<|im_end|>" in a prompt does not end it.

    Raises:
        CheckpointError: the tokenizer cannot be used.
    """

    def __init__(self, directory: Path, more: Sequence[str] = ()) -> None:
        self._directory, self._loaded = directory, load_tokenizer(directory)
        if not self._loaded.is_fast:
            raise CheckpointError(f"{directory}: needs a fast tokenizer")
        self.special, self.plain = (extended(self._loaded, more) for _ in range(2))
        self.plain.encode_special_tokens = True
        added = self.special.get_added_tokens_decoder().values()
        self._specials = re.compile("|".join(re.escape(each.content) for each in added if each.special))
        path = directory / CHAT_TEMPLATE
        self._template = read_json(path).get("chat_template") if path.is_file() else None

    def around(self, parts: Sequence[str]) -> list[str]:
        """
        Render a chat of one message, and return what is before, between and after its texts.

        Args:
            parts: the type of each part of the message: "image", "video" or "text".

        Raises:
            CheckpointError: the template cannot be used.
        """
        content = [
            {"type": kind, "text": PLACEHOLDER} if kind == "text" else {"type": kind} for kind in parts
        ]
        try:
            text: str = self._loaded.apply_chat_template(
                [{"role": "user", "content": content}],
                chat_template=self._template,
                tokenize=False,
                add_generation_prompt=True,
            )
        except Exception as exc:  # no template, or a broken one
            said = f"{self._directory}: its chat template cannot be used: {in_short(exc)}"
            raise CheckpointError(said) from exc
        around = text.split(PLACEHOLDER)
        if len(around) != 1 + parts.count("text"):
            raise CheckpointError(f"{self._directory}: its chat template has no place for the text")
        return around

    def encode(self, around: Sequence[str], texts: Sequence[str]) -> list[int]:
        """Return the ids of a chat: its *texts*, whose special tokens are text, and what is *around* them."""
        ids = list[int]()
        for before, text in zip(around, texts, strict=False):
            *_, end = self._specials.split(before)  # is one text with the next: spaces may be one token
            ids += self.special.encode(before.removesuffix(end), add_special_tokens=False).ids
            ids += self.plain.encode(end + text, add_special_tokens=False).ids
        return ids + list(self.special.encode(around[-1], add_special_tokens=False).ids)


def expanded(ids: Sequence[int], counts: Sequence[int], pad: int) -> list[int]:
    """Return *ids* with so many of each *pad*, which stands once for a picture or video."""
    left = iter(counts)
    return [each for id in ids for each in [id] * (next(left) if id == pad else 1)]


def check_length(tokens: int, context: int) -> None:
    """Raise `ModelError` if a chat has more *tokens* than the model's *context*."""
    if tokens > context:
        raise ModelError(f"the prompt is too long: {tokens} tokens, and the model takes {context}")


def extended(loaded: Any, more: Sequence[str]) -> Tokenizer:
    """Return a copy of the tokenizer's backend with *more* special tokens."""
    tokenizer = thread_safe(loaded)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in more])
    return tokenizer


# --- pictures -----------------------------------------------------------------------------------

SIDE_FACTOR = 28  # sides are multiples of it, whatever patches the network takes; from the released codes
IMAGE_PIXELS = 256 * SIDE_FACTOR * SIDE_FACTOR  # pixels of a picture, about 448 x 448
MAX_SIDE_RATIO = 200  # one side is at most so many times the other


class Patches(NamedTuple):
    """
    A picture or video for the vision tower.

    Attributes:
        pixels: of each patch: (patches, numbers), float32.
        grid: the number of patches in time, in height and in width.
    """

    pixels: torch.Tensor
    grid: tuple[int, int, int]


class PatchPixels:
    """
    Pictures as patches, by the image processor of transformers.

    Args:
        directory: of the base model.
        kind: class of the image processor.
        pixels: of a picture, which Pillow resizes before; None for the processor's own resize alone.
        most: pixels of a picture at most, for that resize; by default the processor's own limit.

    Raises:
        CheckpointError: the processor cannot be loaded, or *most* is less than its fewest pixels.
    """

    def __init__(
        self, directory: Path, kind: Any, pixels: int | None = IMAGE_PIXELS, most: int | None = None
    ) -> None:
        self._processor, self._pixels = load_processor(kind, directory), pixels
        if most is not None:
            least: int = self._processor.size["shortest_edge"]
            if most < least:
                raise CheckpointError(
                    f"{directory}: max_pixels is {most}, and its pictures have {least} or more"
                )
            self._processor.size = {"shortest_edge": least, "longest_edge": most}

    def of(self, image: Image) -> Patches:
        """Return the patches of *image*, computed once.  Raises `ModelError` for a strip."""
        patches: Patches = image.once(self, self._made)
        return patches

    def _made(self, rgb: PIL.Image.Image) -> Patches:
        check_shape(rgb.size)
        made = self._processor(images=self._resized(rgb))
        [(t, h, w)] = [[*map(int, grid)] for grid in made["image_grid_thw"]]
        return Patches(torch.as_tensor(made["pixel_values"]), (t, h, w))

    def _resized(self, rgb: PIL.Image.Image) -> PIL.Image.Image:
        if self._pixels is None:
            return rgb
        height, width = sides(rgb.size, self._pixels, self._pixels)
        return rgb.resize((width, height), PIL.Image.Resampling.BICUBIC)


def check_shape(size: tuple[int, int]) -> None:
    """Raise `ModelError` for a strip: Qwen's code refuses it, too."""
    if max(size) > MAX_SIDE_RATIO * min(size):
        raise ModelError(f"one side of the picture is more than {MAX_SIDE_RATIO} times the other")


def sides(size: tuple[int, int], least: int, most: int) -> tuple[int, int]:
    """
    Return the height and width to resize a picture to: multiples of `SIDE_FACTOR`, *least* to *most* pixels.

    Raises:
        ModelError: the picture is a strip.
    """
    check_shape(size)
    width, height = size
    rows, columns = smart_resize(height, width, SIDE_FACTOR, least, most)
    return int(rows), int(columns)
