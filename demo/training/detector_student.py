"""The demo detector with training losses: things assigned to queries, and targets for each pixel."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import nn

from demo.training.detector_checkpoint import WIDTH, anchors
from demo.training.detector_samples import Batch
from demo.training.world import SHAPES
from models.families.detector.mask2former import Network

NOTHING = len(SHAPES)  # the class of queries that found no thing
RARE = 0.2  # weight of that class, which most queries have
CLASS, MASK, DICE = 2.0, 5.0, 5.0  # weights, as published
FREQUENCIES = 4  # of the position embedding with which pixels predict their thing's centre


class Student(nn.Module):
    """
    The network with the heads that exist in training only.

    Each pixel also learns what covers it, and the centre of that thing.  Masks of equal things differ only by
    place, which pixels learn slowly without this target.
    """

    def __init__(self, network: Network) -> None:
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
