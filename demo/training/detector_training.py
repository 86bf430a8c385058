"""
Train the demo detector, a Mask2Former, from scratch (Cheng et al. 2022).

Queries that compete for things learn slowly.  So each starts at a place of a grid and is assigned the
things near it.  Later their masks decide, as published.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageDraw
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import nn

from demo.training.detector_checkpoint import MEAN, SIZE, STD, STRIDE, WIDTH, anchors, new_network, write
from demo.training.loop import Loop, Stage, ahead
from demo.training.vqa_samples import image_of
from demo.training.world import MAX_THINGS, SHAPES, Scene, Thing, draw_thing, sample_scene
from models.families.detector.mask2former import Mask2FormerNetwork
from models.images.pixels import normalised

SIDE = SIZE // STRIDE  # the side of a mask
COVERED = 0.35  # share of a mask's pixel that a thing must cover: the rims of small rings are half a pixel
NEARLY_TOUCHING = (0.05, 0.3)  # gaps, in radii
NOTHING = len(SHAPES)  # the class of queries that found no thing
RARE = 0.2  # weight of that class, which most queries have
CLASS, MASK, DICE = 2.0, 5.0, 5.0  # weights, as published
FREQUENCIES = 4  # frequencies of the position embedding by which pixels predict their thing's centre
SEED = 23
SCENES = 16  # a step, each also mirrored
PIXELS, THINGS, AGAIN = Stage(600, 2e-3, 1), Stage(3200, 1.5e-3, 2300), Stage(800, 5e-4, 800)
NEAR, STILL = 20.0, 1.0  # weight of places in the assignment of things to queries: at first, and in the end
FREE = 800  # steps in between


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
        pixels[row] = pixels_of(image_of(scene, random))
        for number, thing in enumerate(scene.things):
            labels[row, number] = SHAPES.index(thing.shape)
            centres[row, number] = thing.x / scene.width, thing.y / scene.height
            masks[row, number] = mask_of(thing, scene)
    return Batch(*map(torch.from_numpy, (pixels, labels, centres, masks))).mirrored()


class Student(nn.Module):
    """
    The network with the heads that exist in training only.

    Each pixel also learns what covers it, and the centre of that thing.  Masks of equal things differ only by
    place, which pixels learn slowly without this target.
    """

    def __init__(self, network: Mask2FormerNetwork) -> None:
        super().__init__()
        self.network = network
        self.shapes = nn.Conv2d(WIDTH, len(SHAPES) + 1, 1)
        self.places = nn.Conv2d(WIDTH, 4 * FREQUENCIES, 1)
        self.right = torch.zeros(0)

    def see(self, batch: Batch) -> tuple[Any, dict[str, torch.Tensor]]:
        """Return the output of the pixel decoder, and the losses of the pixels."""
        with torch.autocast("cpu", torch.bfloat16):
            pixels = batch.pixels.contiguous(memory_format=torch.channels_last)
            seen = self.network.model.pixel_level_module(pixels)
            features = seen.decoder_last_hidden_state
            shapes, places = self.shapes(features).float(), self.places(features).float()
        return seen, pixel_losses(shapes, places, batch)

    def find(self, seen: Any, batch: Batch, nearness: float) -> dict[str, torch.Tensor]:
        """
        Return the losses of the queries.

        Args:
            nearness: weight of a query's place in the grid in the assignment of things.
        """
        with torch.autocast("cpu", torch.bfloat16):
            found = self.network.model.transformer_module(
                seen.decoder_hidden_states, seen.decoder_last_hidden_state, output_hidden_states=True
            )
            states = torch.stack(found.intermediate_hidden_states).transpose(1, 2)
            classes = self.network.class_predictor(states).float()
        masks = torch.stack(found.masks_queries_logits).float()
        pairs = matched(classes, masks, batch, nearness)
        return self.query_losses(classes, masks, batch, pairs)

    def query_losses(
        self, classes: torch.Tensor, masks: torch.Tensor, batch: Batch, pairs: tuple[torch.Tensor, ...]
    ) -> dict[str, torch.Tensor]:
        """
        Return the losses of each layer's classes and masks (layers, n, queries, ...) for the assigned things.
        """
        rows, queries, things = pairs
        wanted = torch.full(classes.shape[1:3], NOTHING)
        wanted[rows, queries] = batch.labels[rows, things]
        weight = torch.ones(NOTHING + 1)
        weight[NOTHING] = RARE
        every = wanted.expand(len(classes), -1, -1)
        kind = F.cross_entropy(classes.flatten(0, 2), every.flatten(), weight)
        drawn = masks[:, rows, queries].flatten(2)
        truth = batch.masks[rows, things].flatten(1).expand_as(drawn)
        self.right = (classes[-1].argmax(-1) == wanted).all(1)
        return {
            "class": CLASS * len(classes) * kind,
            "mask": MASK * len(classes) * F.binary_cross_entropy_with_logits(drawn, truth),
            "dice": DICE * len(classes) * dice(drawn.sigmoid(), truth).mean(),
        }


def dice(drawn: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Return 1 - the overlap of masks (..., pixels)."""
    return 1 - (2 * (drawn * truth).sum(-1) + 1) / (drawn.sum(-1) + truth.sum(-1) + 1)


def pixel_losses(shapes: torch.Tensor, places: torch.Tensor, batch: Batch) -> dict[str, torch.Tensor]:
    """Return the losses of the thing that covers each pixel, and of its centre's position embedding."""
    covered, thing = batch.masks.max(1)
    rows = torch.arange(len(thing))[:, None, None]
    wanted = torch.where(covered > 0, batch.labels[rows, thing], NOTHING)
    weight = torch.ones(NOTHING + 1)
    weight[NOTHING] = RARE
    rates = math.pi * torch.arange(1, FREQUENCIES + 1)
    angles = (batch.centres[rows, thing][..., None] * rates).flatten(-2)  # (n, h, w, 2 * FREQUENCIES)
    truth = torch.cat([angles.sin(), angles.cos()], -1)
    there = covered > 0
    return {
        "shape": F.cross_entropy(shapes, wanted, weight),
        "place": F.mse_loss(places.permute(0, 2, 3, 1)[there], truth[there]),
    }


@torch.no_grad()
def matched(
    classes: torch.Tensor, masks: torch.Tensor, batch: Batch, nearness: float
) -> tuple[torch.Tensor, ...]:
    """
    Assign things to queries; return rows, queries and things, each (pairs,).

    One assignment for all layers, of the least cost summed over them, so that a query keeps its thing.
    """
    truth = batch.masks.flatten(2)
    logits = masks.flatten(3)
    count = truth.sum(-1)
    costs = nearness * torch.cdist(anchors().expand(len(truth), -1, -1), batch.centres)
    labels = batch.labels.clamp(min=0)[:, None]
    for kinds, drawn in zip(classes, logits, strict=True):
        share = kinds.softmax(-1).gather(2, labels.expand(-1, kinds.shape[1], -1))
        inside = torch.einsum("nqp,ntp->nqt", drawn, truth)
        cross = (F.softplus(drawn).sum(-1, keepdim=True) - inside) / truth.shape[-1]
        sure = drawn.sigmoid()
        overlap = 2 * torch.einsum("nqp,ntp->nqt", sure, truth) + 1
        apart = 1 - overlap / (sure.sum(-1, keepdim=True) + count[:, None] + 1)
        costs = costs + (MASK * cross + DICE * apart - CLASS * share) / len(classes)
    pairs: list[Any] = []
    for row, (cost, here) in enumerate(zip(costs.numpy(), (batch.labels >= 0).numpy(), strict=True)):
        queries, things = linear_sum_assignment(cost[:, here])
        pairs.append(np.stack([np.full_like(queries, row), queries, things]))
    return tuple(torch.from_numpy(np.concatenate(pairs, 1)))


def train(directory: Path, work: Path, *, say: Callable[[str], None] = print) -> None:
    """Train from scratch (or resume from *work*) and write a checkpoint to *directory*."""
    torch.manual_seed(SEED)
    student = Student(new_network())
    student.network.to(memory_format=torch.channels_last)
    student.network.model.pixel_level_module.compile(dynamic=False)
    student.network.model.transformer_module.compile(dynamic=False)
    student.train()

    def loop(name: str, stage: Stage) -> Loop:
        return Loop(student, work / f"{name}.pt", stage, say=say)

    learn_pixels(student, loop("detector-pixels", PIXELS))
    learn_things(student, loop("detector", THINGS), f"{SEED}", close=0.2, near=NEAR)
    learn_things(student, loop("detector-again", AGAIN), f"{SEED}-again", close=0.5, near=STILL)
    write(student.network.eval(), directory)


def learn_pixels(student: Student, loop: Loop) -> None:
    """Train what covers each pixel, and its centre, which queries need to distinguish things."""
    batches = ahead(lambda step: make_batch(SCENES, f"{SEED}-pixels-{step}"), loop.step)
    for _ in loop.steps():
        _, losses = student.see(next(batches))
        loop.minimise(losses)


def learn_things(student: Student, loop: Loop, seed: str, close: float, near: float) -> None:
    """
    Train things with their masks.

    Args:
        close: share of the pictures in which things nearly touch.
        near: initial weight of places in the assignment.
    """
    batches = ahead(lambda step: make_batch(SCENES, f"{seed}-{step}", close), loop.step)
    for step in loop.steps():
        batch = next(batches)
        seen, losses = student.see(batch)
        loop.minimise(losses | student.find(seen, batch, max(STILL, near * (1 - step / FREE))))
        loop.note("RIGHT", student.right.float().mean().item())
