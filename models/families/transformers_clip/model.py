"""
SigLIP (Zhai et al. 2023), SigLIP 2 (Tschannen et al. 2025) and ALIGN (Jia et al. 2021) of transformers.

The networks and the image processors are those of transformers, so embeddings are equal.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL.Image
import torch
from transformers import (
    AlignModel,
    EfficientNetImageProcessor,
    Siglip2ImageProcessor,
    Siglip2Model,
    SiglipImageProcessor,
    SiglipModel,
)

from models.checkpoints.files import (
    CONFIG,
    PREPROCESSOR,
    PROCESSOR,
    TOKENIZER_FILES,
    model_type,
    safetensors_files,
)
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import Unknown, load_pretrained, load_processor, load_tokenizer
from models.checkpoints.weights import DTYPES
from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Embedding
from models.core.settings import LocalSettings
from models.families.clip.towers import Encode, Input, check_ids, embed
from models.families.processors import PIXELS, ProcessorPixels
from models.families.transformers_clip import FAMILY

ALIGN_LENGTH = 64  # tokens that ALIGN was trained with; its text tower has positions for more


@dataclass(frozen=True, slots=True)
class ClipKind:
    """
    Settings of a kind of CLIP that are not in its configuration.

    Attributes:
        network, processor: classes of transformers.
        lower: it was trained on lowercase only.
        masked: its text tower takes an attention mask.
        length: tokens of every text, padding included, by the network's configuration.
        scale: factor of cosines in its training.
    """

    network: Any
    processor: Any
    lower: bool
    masked: bool
    length: Callable[[Any], int]
    scale: Callable[[Any], torch.Tensor]


def siglip(network: Any, processor: Any) -> ClipKind:
    """Return the kind of a SigLIP (Zhai et al. 2023), version 1 or 2."""
    return ClipKind(
        network,
        processor,
        lower=True,
        masked=False,
        length=lambda config: config.text_config.max_position_embeddings,
        scale=lambda network: network.logit_scale.exp(),
    )


KINDS = {
    "siglip": siglip(SiglipModel, SiglipImageProcessor),
    "siglip2": siglip(Siglip2Model, Siglip2ImageProcessor),
    "align": ClipKind(
        AlignModel,
        EfficientNetImageProcessor,
        lower=False,
        masked=True,
        length=lambda config: min(ALIGN_LENGTH, config.text_config.max_position_embeddings),
        scale=lambda network: 1 / network.temperature,
    ),
}


def kind_of(directory: Path) -> ClipKind:
    """Return the kind of a checkpoint.  Raises `CheckpointError` for another one."""
    return KINDS[model_type(directory, *KINDS)]


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint of these kinds.  Raises `CheckpointError`."""
    return safetensors_files(directory, *KINDS)


class PaddedTokenizer:
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


COST_SIDE = 16  # side of the squares that the cost counts if a network has no patches
IMAGE_INPUTS = (PIXELS, "pixel_attention_mask", "spatial_shapes")  # outputs of the processors
TEXT_INPUTS = ("input_ids", "attention_mask")


class TransformersClip:
    """A loaded CLIP.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        kind = kind_of(directory)
        self.network = load_pretrained(kind.network, directory, DTYPES[dtype]).to(device).eval()
        self._pixels = ProcessorPixels(load_processor(kind.processor, directory), directory)
        config = self.network.config
        self._tokenizer = PaddedTokenizer(
            directory, kind.length(config), lower=kind.lower, masked=kind.masked
        )
        self._vocabulary: int = config.text_config.vocab_size
        self._piece: int = getattr(config.vision_config, "patch_size", COST_SIDE)
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        files = (CONFIG, PREPROCESSOR, PROCESSOR, *TOKENIZER_FILES)
        scale = float(kind.scale(self.network).detach().float())
        more: dict[str, Any] = {"logit_scale": scale, "reentrant": True}
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, **more)
        self._check(directory)

    def _check(self, directory: Path) -> None:
        """Raise `CheckpointError` if the tokenizer or the image processor doesn't fit the network."""
        try:
            self.prepare(TextCall("a text"))
        except ModelError as exc:
            raise CheckpointError(f"{directory}: {exc}") from exc
        images = [self._pixels.resized(PIL.Image.new("RGB", size)) for size in ((64, 48), (48, 64))]
        if len({pixels.shape for pixels in images}) > 1:
            raise CheckpointError(f"{directory}: its image processor makes pictures of different sizes")

    def prepare(self, call: ImageCall | TextCall) -> Prepared:
        """Preprocess an image or tokenise a text; the cost is the tower's length in tokens."""
        if isinstance(call, TextCall):
            tensors, cut, unknown = self._tokenizer(call.text)
            check_ids(tensors[0], self._vocabulary)
            return Prepared(self._tokenizer.length, Input("text", call.text, tensors, cut, unknown))
        made = self._pixels.inputs(call.image.rgb)
        tensors = tuple(made[name] for name in IMAGE_INPUTS if name in made)
        return Prepared(self._patches(tensors[0]), Input("image", call.image.digest, tensors))

    def _patches(self, pixels: torch.Tensor) -> int:
        """Count the patches of a picture; SigLIP 2's NaFlex pixels are patches already."""
        if pixels.ndim == 2:
            return len(pixels)
        return max(1, pixels.shape[1] // self._piece * (pixels.shape[2] // self._piece))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Embedding]:
        """Run each tower once, on the distinct images and the distinct texts."""
        towers: dict[str, Encode] = {"image": self._encode_images, "text": self._encode_texts}
        return embed([prepared.data for prepared in batch], towers, self._device, self._dtype)

    def _encode_images(self, pixels: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        named = dict(
            zip(IMAGE_INPUTS, (self._pixels.normalised(pixels).to(self._dtype), *more), strict=False)
        )
        embedded: torch.Tensor = self.network.get_image_features(**named).pooler_output
        return embedded

    def _encode_texts(self, *tensors: torch.Tensor) -> torch.Tensor:
        named = dict(zip(TEXT_INPUTS, tensors, strict=False))
        embedded: torch.Tensor = self.network.get_text_features(**named).pooler_output
        return embedded

    def example(self) -> ImageCall:
        return ImageCall(grey(384, 256))


def from_settings(settings: LocalSettings) -> TransformersClip:
    """Load the CLIP of a table.  Raises `CheckpointError`."""
    return TransformersClip(**model_arguments(settings))
