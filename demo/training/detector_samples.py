"""Training batches for the demo detector: pictures, and the mask of each thing in them."""

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import PIL.Image
import PIL.ImageDraw
import torch

from demo.training.detector_checkpoint import MEAN, SIZE, STD, STRIDE
from demo.training.vqa_samples import picture
from demo.training.world import MAX_THINGS, SHAPES, Scene, Thing, draw_thing, sample_scene
from models.images.pixels import normalised

SIDE = SIZE // STRIDE  # of a mask
COVERED = 0.35  # share of a mask's pixel that a thing must cover: the rims of small rings are half a pixel
NEARLY_TOUCHING = (0.05, 0.3)  # gaps, in radii


@dataclass(frozen=True, slots=True)
class Batch:
    """
    n pictures with at most MAX_THINGS things.

    Attributes:
        pixels: (n, 3, SIZE, SIZE) float32.
        labels: (n, MAX_THINGS) number in SHAPES, -1 for no thing.
        centres: (n, MAX_THINGS, 2) x and y of a thing as shares of the picture.
        masks: (n, MAX_THINGS, SIDE, SIDE) 1 where it is.
    """

    pixels: torch.Tensor
    labels: torch.Tensor
    centres: torch.Tensor
    masks: torch.Tensor

    def mirrored(self) -> "Batch":
        """Return these pictures and their mirror images."""
        opposite = self.centres * torch.tensor([-1.0, 1.0]) + torch.tensor([1.0, 0.0])
        return Batch(
            torch.cat([self.pixels, self.pixels.flip(-1)]),
            self.labels.repeat(2, 1),
            torch.cat([self.centres, opposite]),
            torch.cat([self.masks, self.masks.flip(-1)]),
        )


def mask_of(thing: Thing, scene: Scene) -> np.ndarray:
    """Return the mask of *thing*, drawn alone: (SIDE, SIDE) of booleans."""
    width, height = round(scene.width * SIZE), round(scene.height * SIZE)
    canvas = PIL.Image.new("RGB", (width, height))
    white = replace(thing, rgb=(255, 255, 255))
    draw_thing(PIL.ImageDraw.Draw(canvas), white, (0, 0, 0), SIZE)
    small = canvas.getchannel(0).resize((SIDE, SIDE), PIL.Image.Resampling.BOX)
    return np.asarray(small) > 255 * COVERED


def pixels_of(image: PIL.Image.Image) -> np.ndarray:
    """Preprocess like the checkpoint's preprocessor: (3, SIZE, SIZE) float32."""
    pixels = np.array(image.resize((SIZE, SIZE), PIL.Image.Resampling.BILINEAR))
    normal: np.ndarray = normalised(torch.from_numpy(pixels).permute(2, 0, 1), MEAN, STD).numpy()
    return normal


def make_batch(count: int, seed: str, close: float = 0.0) -> Batch:
    """
    Return *count* scenes of *seed* and their mirror images; in a share *close* of them things nearly touch.
    """
    random = Random(seed)
    pixels = np.zeros((count, 3, SIZE, SIZE), np.float32)
    labels = np.full((count, MAX_THINGS), -1)
    centres = np.zeros((count, MAX_THINGS, 2), np.float32)
    masks = np.zeros((count, MAX_THINGS, SIDE, SIDE), np.float32)
    for row in range(count):
        gap = random.uniform(*NEARLY_TOUCHING) if random.random() < close else None
        scene = sample_scene(random, gap)
        pixels[row] = pixels_of(picture(scene, random))
        for number, thing in enumerate(scene.things):
            labels[row, number] = SHAPES.index(thing.shape)
            centres[row, number] = thing.x / scene.width, thing.y / scene.height
            masks[row, number] = mask_of(thing, scene)
    return Batch(*map(torch.from_numpy, (pixels, labels, centres, masks))).mirrored()
