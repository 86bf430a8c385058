"""
SigLIP (Zhai et al. 2023), SigLIP 2 (Tschannen et al. 2025) and ALIGN (Jia et al. 2021) of transformers.

The networks and the image processors are those of transformers, so an embedding is the one that its users
get.  Which of the three a checkpoint is, its configuration says.
"""

from collections.abc import Sequence
from pathlib import Path

import PIL.Image
import torch

from models.checkpoints.files import CONFIG, PIECES, PREPROCESSOR, PROCESSOR, TOKENIZER, TOKENIZER_CONFIG
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.weights import DTYPES
from models.core.calls import ImageCall, TextCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.outcomes import Embedding
from models.core.reason import in_short
from models.core.settings import LocalSettings
from models.families.clip.towers import Input, embed
from models.families.transformers_clip import FAMILY
from models.families.transformers_clip.loading import kind_of, load_network, processor_of
from models.families.transformers_clip.words import Words
from models.images.image import Image

PIECE = 16  # side of the pieces that the cost counts, where a network has no patches
IMAGE = ("pixel_values", "pixel_attention_mask", "spatial_shapes")  # what processors give, by name
TEXT = ("input_ids", "attention_mask")


class TransformersClip:
    """
    A loaded CLIP.

    Args:
        directory: a checkpoint as transformers saves it, weights in safetensors.
        dtype: "float32" or "bfloat16".
        device: where PyTorch puts it: "cpu", "cuda:0".
        id, revision: what scores are labelled with; by default the directory's name and a digest.

    Raises:
        CheckpointError: naming the file that is missing or cannot be used.
    """

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        kind = kind_of(directory)
        self.network = load_network(directory, DTYPES[dtype]).to(device).eval()
        self._processor = processor_of(directory)
        config = self.network.config
        self._words = Words(directory, kind.length(config), lower=kind.lower, masked=kind.masked)
        self._vocabulary: int = config.text_config.vocab_size
        self._piece: int = getattr(config.vision_config, "patch_size", PIECE)
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        self.info = info_of(
            FAMILY,
            directory,
            (CONFIG, PREPROCESSOR, PROCESSOR, TOKENIZER, TOKENIZER_CONFIG, PIECES),
            dtype=dtype,
            device=device,
            id=id,
            revision=revision,
            logit_scale=float(kind.scale(self.network).detach().float()),
            reentrant=True,
        )
        self._check(directory)

    def _check(self, directory: Path) -> None:
        """Raises `CheckpointError` where the tokenizer or the image processor doesn't fit the network."""
        try:
            self.prepare(TextCall("a text"))
        except ModelError as exc:
            raise CheckpointError(f"{directory}: {exc}") from exc
        try:
            pictures = [self._pixels(PIL.Image.new("RGB", size)) for size in ((64, 48), (48, 64))]
        except Exception as exc:  # a processor takes any value from its file, and stumbles over it here
            raise CheckpointError(f"{directory}: its image processor fails: {in_short(exc)}") from exc
        if len({tensors[0].shape for tensors in pictures}) > 1:
            raise CheckpointError(f"{directory}: its image processor makes pictures of different sizes")

    def prepare(self, call: ImageCall | TextCall) -> Prepared:
        """Preprocess an image or tokenise a text; the cost is the tower's length in tokens."""
        if isinstance(call, TextCall):
            tensors, cut = self._words(call.text)
            if tensors[0].max() >= self._vocabulary:
                raise ModelError(
                    "the tokenizer does not fit the text tower: its ids go beyond the tower's vocabulary"
                )
            return Prepared(self._words.length, Input("text", call.text, tensors, cut))
        tensors = self._pixels(call.image.rgb)
        return Prepared(self._patches(tensors[0]), Input("image", call.image.digest, tensors))

    def _pixels(self, rgb: PIL.Image.Image) -> tuple[torch.Tensor, ...]:
        """What the image tower is given."""
        made = self._processor(images=rgb, return_tensors="pt")
        return tuple(made[name][0] for name in IMAGE if name in made)

    def _patches(self, pixels: torch.Tensor) -> int:
        """Of a picture, which a SigLIP 2 of any aspect ratio gets in patches already."""
        if pixels.ndim == 2:
            return len(pixels)
        return max(1, pixels.shape[1] // self._piece * (pixels.shape[2] // self._piece))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Embedding | ModelError]:
        """One pass of each tower, over the distinct images and the distinct texts."""
        towers = {"image": self._encode_images, "text": self._encode_texts}
        return embed([prepared.data for prepared in batch], towers, self._device, self._dtype)

    def _encode_images(self, *tensors: torch.Tensor) -> torch.Tensor:
        named = dict(zip(IMAGE, tensors, strict=False))
        embedded: torch.Tensor = self.network.get_image_features(**named).pooler_output
        return embedded

    def _encode_texts(self, *tensors: torch.Tensor) -> torch.Tensor:
        named = dict(zip(TEXT, tensors, strict=False))
        embedded: torch.Tensor = self.network.get_text_features(**named).pooler_output
        return embedded

    def example(self) -> ImageCall:
        """A grey picture."""
        return ImageCall(Image.of(PIL.Image.new("RGB", (384, 256), (128, 128, 128)), "example"))


def load(settings: LocalSettings) -> TransformersClip:
    """The CLIP of a table.  Raises `CheckpointError`."""
    return TransformersClip(**model_arguments(settings))
