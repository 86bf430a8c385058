"""
PAL4VST (Zhang et al. 2023, "Perceptual Artifacts Localization for Image Synthesis Tasks"): a UPerNet on a
Swin decides for each pixel whether it belongs to an artifact.

The network is that of transformers, and the pixels are those of the released code: the picture is stretched
to a square of 512 pixels, bicubic.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
import torch
from transformers import UperNetForSemanticSegmentation

from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.mismatch import mismatch
from models.checkpoints.weights import DTYPES, read_file
from models.core.calls import RewardCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.known import grey
from models.core.outcomes import Reward
from models.core.settings import LocalSettings
from models.families.artifact import FAMILY
from models.families.artifact.layout import config_of, renamed, weights_files
from models.families.upload import upload
from models.images.pixels import Preprocessor

SIDE = 512
COST = 1024  # tokens of a picture: patches of 16 by 16 pixels
ARTIFACT = 1  # the class; 0 is the rest
# Of transformers' network: a layer that no output uses, and counts of training.
UNUSED = re.compile(r"backbone\.swin\.layernorm\..*|.*\.num_batches_tracked")


@dataclass(frozen=True, slots=True)
class Stretched(Preprocessor):
    """The pixels of a square, without the aspect ratio; normalised by ImageNet's colours."""

    mean: tuple[float, ...] = (123.675 / 255, 116.28 / 255, 103.53 / 255)
    std: tuple[float, ...] = (58.395 / 255, 57.12 / 255, 57.375 / 255)

    def resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Return the stretched picture: (3, 512, 512), uint8."""
        square = rgb.resize((SIDE, SIDE), PIL.Image.Resampling.BICUBIC)
        return torch.from_numpy(np.array(square).transpose(2, 0, 1).copy())


class Pal4Vst:
    """A loaded PAL4VST.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        [path] = weights_files(directory)
        self._network = load_network(path).to(device, DTYPES[dtype]).eval()
        self._device, self._dtype, self._pixels = torch.device(device), DTYPES[dtype], Stretched()
        self.info = info_of(FAMILY, directory, (), dtype, device, id, revision, weights=[path])

    def prepare(self, call: RewardCall) -> Prepared:
        """Stretch the picture; a prompt is not used."""
        return Prepared(COST, call.image.once(self._pixels, self._pixels.resized))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """Return the artifact ratio of each picture: the share of pixels of the class "artifact"."""
        pixels = upload([prepared.data for prepared in batch], self._device)
        logits = self._network(self._pixels.normalised(pixels).to(self._dtype)).logits.float()
        ratios = (logits.argmax(1) == ARTIFACT).flatten(1).double().mean(1)
        finite = logits.flatten(1).isfinite().all(1)
        return [
            Reward((ratio,)) if right else ModelError("the model's output is not finite")
            for ratio, right in zip(ratios.tolist(), finite.tolist(), strict=True)
        ]

    def example(self) -> RewardCall:
        return RewardCall(grey(SIDE, SIDE))


def load_network(path: Path) -> UperNetForSemanticSegmentation:
    """Load the network of a file with every weight.  Raises `CheckpointError`."""
    held = read_file(path, "cpu")
    config = config_of(path, held)
    tensors = renamed(held)
    network = UperNetForSemanticSegmentation(config)
    expected = {name: t for name, t in network.state_dict().items() if not UNUSED.fullmatch(name)}
    if wrong := mismatch(tensors, expected):
        raise CheckpointError(f"{path}: the weights don't fit: {wrong}")
    network.load_state_dict(tensors, strict=False)  # all but the unused are there
    return network


def load(settings: LocalSettings) -> Pal4Vst:
    """Load the model of a table.  Raises `CheckpointError`."""
    return Pal4Vst(**model_arguments(settings))
