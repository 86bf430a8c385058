"""
ImageReward (Xu et al. 2023, "ImageReward: Learning and Evaluating Human Preferences for Text-to-Image
Generation"): BLIP reads the prompt while it looks at the image, and a head makes one number of that.

Numbers, lengths and pixels are those of the released code (package image-reward 1.5).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import PIL.Image
import torch
from torch.nn.utils.rnn import pad_sequence

from models.checkpoints.revision import digest_of
from models.checkpoints.weights import DTYPES
from models.core.calls import RewardCall
from models.core.contract import ModelError, ModelInfo, Prepared
from models.core.outcomes import Reward
from models.core.settings import LocalSettings
from models.families.imagereward import FAMILY
from models.families.imagereward.layout import FILES, find
from models.families.imagereward.network import load_network
from models.families.imagereward.words import load_words
from models.images.image import Image
from models.images.pixels import Pixels


@dataclass(frozen=True, slots=True)
class Input:
    """One picture and one text; inputs with equal keys have equal pixels."""

    key: str
    pixels: torch.Tensor
    ids: tuple[int, ...]
    truncated: bool


class ImageReward:
    """
    A loaded ImageReward.

    Args:
        directory: the published files, with the words of bert-base-uncased beside them.
        dtype: "float32" or "bfloat16"; the head is float32.
        device: where PyTorch puts it: "cpu", "cuda:0".
        id, revision: what scores are labelled with; by default the directory's name and a digest.

    Raises:
        CheckpointError: naming the file that is missing or cannot be used.
    """

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        self._network = load_network(directory, DTYPES[dtype]).to(device).eval()
        self._words = load_words(directory, self._network.text.config.vocab_size)
        self._device, self._dtype = device, DTYPES[dtype]
        vision = self._network.vision.config
        self._pixels = Pixels(vision.image_size, pad=False, to_even=True)
        self._patches = (vision.image_size // vision.patch_size) ** 2
        self.info = ModelInfo(
            role=FAMILY.role,
            family=FAMILY.name,
            id=id or directory.name,
            revision=revision or digest_of(directory / name for name in FILES),
            dtype=dtype,
            device=device,
        )

    def prepare(self, call: RewardCall) -> Prepared:
        """Pixels and token ids; the cost counts patches and tokens."""
        encoded = self._words.encode(call.prompt)
        ids = tuple(encoded.ids)
        pixels = self._pixels(call.image.rgb)
        return Prepared(
            self._patches + len(ids), Input(call.image.digest, pixels, ids, bool(encoded.overflowing))
        )

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """One pass over the distinct pictures, and one over all texts; padding is masked."""
        inputs: list[Input] = [prepared.data for prepared in batch]
        pictures = {input.key: input.pixels for input in inputs}
        order = {key: place for place, key in enumerate(pictures)}
        rows = [torch.tensor(input.ids) for input in inputs]
        rewards = self._network(
            torch.stack([*pictures.values()]).to(self._device, self._dtype),
            torch.tensor([order[input.key] for input in inputs], device=self._device),
            pad_sequence(rows, batch_first=True).to(self._device),
            pad_sequence([torch.ones_like(row) for row in rows], batch_first=True).to(self._device),
        )
        return [
            Reward((value,), truncated=input.truncated)
            if isfinite(value)
            else ModelError("the model's output is not finite")
            for value, input in zip(rewards.tolist(), inputs, strict=True)
        ]

    def example(self) -> RewardCall:
        """A grey square and a prompt."""
        grey = Image.of(PIL.Image.new("RGB", (224, 224), (128, 128, 128)), "example")
        return RewardCall(grey, "a red circle left of a blue square")


def load(settings: LocalSettings) -> ImageReward:
    """The model of a table.  Raises `CheckpointError`."""
    found = find(settings.checkpoint)
    return ImageReward(
        found.directory,
        dtype=settings.dtype,
        device=settings.device,
        id=settings.id or found.id,
        revision=settings.revision,
    )
