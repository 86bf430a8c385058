"""
CLIP (Radford et al. 2021) through open_clip: one embedding for an image, one for a text.

open_clip does the loading, the preprocessing and the tokenising, so an embedding here is the one that
open_clip's users get.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import open_clip
import PIL.Image
import torch

from models.checkpoints.vocabulary import read_vocabulary
from models.checkpoints.weights import DTYPES
from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError, ModelError, ModelInfo, Prepared
from models.core.outcomes import Embedding
from models.families.clip import FAMILY, ClipSettings
from models.families.clip.loading import load_parts
from models.families.clip.source import find
from models.families.clip.towers import Input, embed
from models.families.clip.traced import trace
from models.families.traced import pays_on
from models.images.image import Image
from models.images.pixels import middle


class Clip:
    """
    A loaded CLIP.

    Args:
        model: a directory in open_clip's format or in that of transformers (neither causes a request),
            a hub id, or a name open_clip knows.
        pretrained: for a name, open_clip's tag of the weights or a file of them.
        resize_mode: "shortest", "longest" or "squash" in place of the checkpoint's own.
        dtype: "float32" or "bfloat16" (layer norms stay float32 where open_clip can do that).

    Raises:
        CheckpointError: a file is missing or unreadable, or the weights don't fit the configuration.
    """

    def __init__(
        self,
        model: str,
        *,
        pretrained: str | None = None,
        resize_mode: str | None = None,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
    ) -> None:
        found = find(model, pretrained, revision)
        parts = load_parts(found, dtype, device, resize_mode)
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        self.network, self.preprocess = parts.network, parts.preprocess
        if pays_on(self._device):
            trace(self.network)
        self.tokenizer = parts.tokenizer
        # Tokenizers of transformers keep their last settings, so each length has its own: `prepare`
        # is thread-safe.  open_clip's has no settings, and splits a word only once.
        simple = isinstance(self.tokenizer, open_clip.SimpleTokenizer)
        self._roomy = self.tokenizer if simple else copy.deepcopy(self.tokenizer)
        self._length: int = self.tokenizer.context_length
        self._patches = count_patches(self.network.visual)
        self._vocabulary: int = getattr(self.network, "text", self.network).vocab_size
        self._crops = parts.crops
        self.info = ModelInfo(
            role=FAMILY.role,
            family=FAMILY.name,
            id=id or found.id,
            revision=found.revision,
            dtype=dtype,
            device=device,
            vocabulary=read_vocabulary(found.directory) if found.directory else frozenset(),
            logit_scale=float(self.network.logit_scale.detach().exp()),
            reentrant=True,
        )
        try:
            self.prepare(TextCall("the tokenizers take their settings now"))
        except ModelError as exc:
            raise CheckpointError(f"{model}: {exc}") from exc

    def prepare(self, call: ImageCall | TextCall) -> Prepared:
        """Preprocess an image or tokenise a text; the cost is the tower's length in tokens."""
        if isinstance(call, TextCall):
            tokens = self.tokenizer([call.text])[0]
            if tokens.max() >= self._vocabulary:
                raise ModelError(
                    "the tokenizer does not fit the text tower: its ids go beyond the tower's vocabulary"
                )
            return Prepared(self._length, Input("text", call.text, (tokens,), self._cuts(call.text)))
        rgb = middle(call.image.rgb) if self._crops else call.image.rgb
        try:
            pixels = self.preprocess(rgb)
        except ValueError as exc:  # some of open_clip's modes round a thin strip to no pixels
            raise ModelError("the image is too thin for the model's preprocessing") from exc
        return Prepared(self._patches, Input("image", call.image.digest, (pixels,)))

    def _cuts(self, text: str) -> bool:
        """Whether the tower doesn't see all of *text*: then one more word past its end is lost too."""
        one, more = self._roomy([text, f"{text} x"], context_length=self._length + 1)
        return torch.equal(one, more)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Embedding | ModelError]:
        """One pass of each tower, over the distinct images and the distinct texts."""
        towers = {"image": self.network.encode_image, "text": self.network.encode_text}
        return embed([prepared.data for prepared in batch], towers, self._device, self._dtype)

    def example(self) -> ImageCall:
        """A grey square."""
        return ImageCall(Image.of(PIL.Image.new("RGB", (336, 336), (128, 128, 128)), "example"))


def load(settings: ClipSettings) -> Clip:
    """The CLIP of a table.  Raises `CheckpointError`."""
    return Clip(
        settings.model or settings.checkpoint,
        pretrained=settings.pretrained,
        resize_mode=settings.resize_mode,
        dtype=settings.dtype,
        device=settings.device,
        id=settings.id,
        revision=settings.revision,
    )


def count_patches(visual: Any) -> int:
    """Patches of an image, or pieces of 16x16 pixels where the tower has no patches."""
    sizes = np.broadcast_to(visual.image_size, 2) // np.broadcast_to(getattr(visual, "patch_size", 16), 2)
    return int(sizes.prod())
