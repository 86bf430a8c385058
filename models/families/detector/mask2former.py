"""
Mask2Former (Cheng et al. 2022, "Masked-attention Mask Transformer") of transformers.

A fixed number of queries each return one mask and a class.  Trained for instance segmentation, it finds
objects of its classes with their pixels.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from transformers import (
    Mask2FormerConfig,
    Mask2FormerImageProcessor,
    Mask2FormerModel,
    Mask2FormerPreTrainedModel,
)

from models.checkpoints.files import CONFIG, PREPROCESSOR, PROCESSOR, safetensors_files
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_pretrained, load_processor
from models.checkpoints.weights import DTYPES
from models.core.calls import DetectCall
from models.core.contract import NOT_FINITE, CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Box, Detection, Detections, packed
from models.core.settings import LocalSettings
from models.families.detector import MASK2FORMER
from models.families.detector.image import PreparedImage, by_shape, prepared_image
from models.families.inputs import upload
from models.families.processors import ProcessorPixels

MASK_SIDE = 384  # masks are compared and scored on such a square


@dataclass(frozen=True, slots=True)
class Instances:
    """
    Q candidates for objects in one picture.

    Attributes:
        scores: (Q,): the class's probability times the mean probability of the mask's pixels.
        labels: (Q,): class indices.
        masks: (Q, 384, 384) of booleans, stretched over the picture.
    """

    scores: np.ndarray
    labels: np.ndarray
    masks: np.ndarray

    def detections(
        self, labels: tuple[str, ...], size: tuple[int, int], threshold: float
    ) -> Detections | ModelError:
        """
        Return those that score more than *threshold*, the highest score first, on a picture of that *size*.
        """
        if not np.isfinite(self.scores).all():
            return ModelError(NOT_FINITE)
        order = np.argsort(-self.scores, kind="stable")
        found = []
        for number in order[self.scores[order] > threshold]:
            mask = stretched(self.masks[number], size)
            if (box := box_of(mask)) is not None:
                left, top, right, bottom = map(int, box)
                part = packed(mask[top:bottom, left:right])
                score = min(1.0, float(self.scores[number]))
                found.append(Detection(labels[self.labels[number]], score, box, part))
        return Detections(tuple(found))


def instances_of(classes: torch.Tensor, masks: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """
    Return the likeliest pairs of a query and a class, as many as there are queries.

    Args:
        classes: logits (N, Q, C+1), the last of no object.
        masks: logits (N, Q, h, w).

    Returns:
        Scores (N, Q), class indices (N, Q) and masks (N, Q, 384, 384) of booleans.
    """
    queries, count = classes.shape[1], classes.shape[2] - 1
    shares = classes.softmax(-1)[..., :-1].flatten(1)
    shares, pairs = shares.topk(queries, dim=-1, sorted=False)
    rows = torch.arange(len(masks), device=masks.device)[:, None]
    masks = masks[rows, torch.div(pairs, count, rounding_mode="floor")]  # they are not large yet
    masks = F.interpolate(masks, size=(MASK_SIDE, MASK_SIDE), mode="bilinear", align_corners=False)
    inside = masks > 0
    area = inside.flatten(2).sum(-1)
    sure = masks.sigmoid_().mul_(inside).flatten(2).sum(-1) / (area + 1e-6)
    return shares * sure, pairs % count, inside


def stretched(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resize a mask (384, 384) to a picture of that width and height, by nearest pixel."""
    width, height = size
    square = torch.from_numpy(np.asarray(mask, np.uint8))[None, None]
    whole: np.ndarray = F.interpolate(square, size=(height, width), mode="nearest")[0, 0].bool().numpy()
    return whole


def box_of(mask: np.ndarray) -> Box | None:
    """Return left, top, right and bottom around a mask's pixels; None for an empty mask."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return None
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)


MODEL_TYPE = "mask2former"

# It warns at every start of backbones other than Swin, such as the demo's.  They work.
logging.getLogger("transformers.models.mask2former.configuration_mask2former").setLevel(logging.ERROR)


class Mask2FormerNetwork(Mask2FormerPreTrainedModel):  # type: ignore[misc]  # transformers has no types
    """The published network without its loss, which would need SciPy."""

    _keys_to_ignore_on_load_unexpected = ("criterion",)

    def __init__(self, config: Mask2FormerConfig) -> None:
        super().__init__(config)
        self.model = Mask2FormerModel(config)
        self.class_predictor = torch.nn.Linear(config.hidden_dim, config.num_labels + 1)
        self.post_init()

    def forward(self, pixel_values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Return logits of each query: of all classes and of none (N, Q, C+1), and of its mask (N, Q, h, w).
        """
        found = self.model(pixel_values=pixel_values, output_hidden_states=True)
        last = found.transformer_decoder_intermediate_states[-1].transpose(0, 1)
        return self.class_predictor(last), found.masks_queries_logits[-1]


class Mask2Former:
    """A loaded Mask2Former.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        self._network = (
            load_pretrained(Mask2FormerNetwork, directory, DTYPES[dtype], MODEL_TYPE).to(device).eval()
        )
        self._pixels = ProcessorPixels(load_processor(Mask2FormerImageProcessor, directory), directory)
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        self._labels = labels_of(directory / CONFIG, self._network.config)
        files = (CONFIG, PREPROCESSOR, PROCESSOR)
        more: dict[str, Any] = {"labels": self._labels, "masks": True}
        self.info = info_of(MASK2FORMER, directory, files, dtype, device, id, revision, **more)

    def prepare(self, call: DetectCall) -> Prepared:
        """Preprocess the picture."""
        if call.labels:
            raise ModelError("the detector finds only the classes that it was trained on")
        return self.ready(prepared_image(call, self._pixels.resized))

    def ready(self, image: PreparedImage) -> Prepared:
        """Wrap a picture; the cost is its number of 32 x 32 squares."""
        return Prepared(image.pieces, image)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Detections | ModelError]:
        """Run all pictures of equal shape in one pass, without padding."""
        outcomes: dict[int, Detections | ModelError] = {}
        groups = [*by_shape([prepared.data for prepared in batch])]
        queued = [(places, images, self._instances(images)) for places, images in groups]
        for places, images, found in queued:
            for place, image, instances in zip(places, images, on_the_cpu(found), strict=True):
                outcomes[place] = instances.detections(self._labels, image.size, image.threshold)
        return [outcomes[place] for place in range(len(batch))]

    def _instances(self, images: Sequence[PreparedImage]) -> tuple[torch.Tensor, ...]:
        pixels = self._pixels.normalised(upload([image.pixels for image in images], self._device))
        classes, masks = self._network(pixels.to(self._dtype))
        return instances_of(classes.float(), masks.float())

    def example(self) -> DetectCall:
        return DetectCall(grey(512, 512))


def on_the_cpu(found: tuple[torch.Tensor, ...]) -> Iterator[Instances]:
    """Yield the instances of each picture."""
    arrays: list[np.ndarray] = [tensor.cpu().numpy() for tensor in found]
    for scores, labels, masks in zip(*arrays, strict=True):
        yield Instances(scores, labels, masks)


def labels_of(path: Path, config: Any) -> tuple[str, ...]:
    """Return the class names.  Raises `CheckpointError` if one is missing."""
    names = {int(number): str(name) for number, name in config.id2label.items()}
    if sorted(names) != [*range(len(names))]:
        raise CheckpointError(f"{path}: id2label must name all classes, from 0")
    return tuple(names[number] for number in range(len(names)))


def from_settings(settings: LocalSettings) -> Mask2Former:
    """Load the detector of a table.  Raises `CheckpointError`."""
    return Mask2Former(**model_arguments(settings))


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint of this kind.  Raises `CheckpointError`."""
    return safetensors_files(directory, MODEL_TYPE)
