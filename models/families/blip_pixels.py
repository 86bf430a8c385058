"""The image processor of a BLIP of transformers."""

from pathlib import Path

import PIL.Image
import torch
from transformers import BlipImageProcessorPil

from models.checkpoints.pretrained import load_processor
from models.core.contract import CheckpointError
from models.core.messages import in_short


class BlipPixels:
    """
    The image processor of a checkpoint, for a vision tower with pictures of *side* pixels.  Thread-safe.

    Raises:
        CheckpointError: it is missing, fails, or returns pictures of another size.
    """

    def __init__(self, directory: Path, side: int) -> None:
        self._processor = load_processor(BlipImageProcessorPil, directory)
        try:
            shape = tuple(self(PIL.Image.new("RGB", (64, 48))).shape)
        except Exception as exc:  # invalid values of the file fail only here
            raise CheckpointError(f"{directory}: its image processor fails: {in_short(exc)}") from exc
        if shape != (3, side, side):
            raise CheckpointError(f"{directory}: pictures have the shape {shape}, not that of the network")

    def __call__(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Return normalised pixels (3, side, side)."""
        pixels: torch.Tensor = self._processor(images=rgb, return_tensors="pt")["pixel_values"][0]
        return pixels
