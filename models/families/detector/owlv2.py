"""
OWLv2 (Minderer et al. 2023, "Scaling Open-Vocabulary Object Detection") of transformers.

Each patch of a picture gives one box, and its similarity to each of the labels of a call.  It returns no
masks.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from torchvision.ops import batched_nms
from transformers import Owlv2ForObjectDetection, Owlv2ImageProcessor

from models.checkpoints.files import CONFIG, PREPROCESSOR, PROCESSOR, TOKENIZER_FILES, safetensors_files
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_fast_tokenizer, load_pretrained, load_processor
from models.checkpoints.weights import DTYPES
from models.core.calls import DetectCall
from models.core.contract import NOT_FINITE, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Detection, Detections
from models.families.detector import OWLV2, Owlv2Settings
from models.families.detector.image import PreparedImage, prepared_image
from models.families.inputs import upload

MODEL_TYPE = "owlv2"
LABEL_PROMPT = "a photo of a {}"  # the prompt of a label in training
CACHED_LABEL_SETS = 8  # sets of labels whose embeddings are cached


class Owlv2:
    """
    A loaded OWLv2.  Args as in `ModelArguments`; raises `CheckpointError`.

    Args:
        max_overlap: of boxes of one label with a larger IoU, only the one with the highest score is kept.
    """

    def __init__(
        self,
        directory: Path,
        *,
        dtype: str,
        device: str,
        max_overlap: float = 0.5,
        id: str = "",
        revision: str = "",
    ) -> None:
        network = load_pretrained(Owlv2ForObjectDetection, directory, DTYPES[dtype], MODEL_TYPE)
        self._network = network.to(device).eval()
        self._processor = load_processor(Owlv2ImageProcessor, directory)
        text = network.config.text_config
        self._tokenizer, *_ = load_fast_tokenizer(directory, text.vocab_size)
        length = text.max_position_embeddings
        self._tokenizer.enable_truncation(length)
        self._tokenizer.enable_padding(length=length)
        self._device, self._dtype, self._max_overlap = torch.device(device), DTYPES[dtype], max_overlap
        self._embedded = lru_cache(CACHED_LABEL_SETS)(self._embed)
        files = (CONFIG, PREPROCESSOR, PROCESSOR, *TOKENIZER_FILES)
        self.info = info_of(OWLV2, directory, files, dtype, device, id, revision)

    def forget(self) -> None:
        """Drop the embeddings of words."""
        self._embedded.cache_clear()

    def prepare(self, call: DetectCall) -> Prepared:
        """Preprocess the picture."""
        if not call.labels:
            raise ModelError("the detector needs labels, and the call has none")
        return self.ready(prepared_image(call, self._pixels))

    def _pixels(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Return normalised pixels: the processor resizes floats, so that none of 8 bits are in between."""
        pixels: torch.Tensor = self._processor(images=rgb, return_tensors="pt")["pixel_values"][0]
        return pixels

    def ready(self, image: PreparedImage) -> Prepared:
        """Wrap a picture; the cost is its number of patches."""
        return Prepared(self._network.num_patches_height * self._network.num_patches_width, image)

    @property
    def side(self) -> int:
        """Side of the network's input, in pixels."""
        side: int = self._network.config.vision_config.image_size
        return side

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Detections | ModelError]:
        """Run the vision tower once; embeddings of recent labels are cached."""
        images: list[PreparedImage] = [prepared.data for prepared in batch]
        pixels = upload([image.pixels for image in images], self._device)
        places, _ = self._network.image_embedder(pixel_values=pixels.to(self._dtype))
        features = places.flatten(1, 2)
        boxes = self._network.box_predictor(features, places).float()
        found = []
        for image, feature in zip(images, features, strict=True):
            labels = self._embedded(image.labels)
            logits, _ = self._network.class_predictor(feature[None], labels[None])
            numbers = logits[0].float()  # the sigmoid makes a 1 of an infinite one
            found.append(numbers.sigmoid().where(numbers.isfinite(), nan).max(-1))
        rows = zip(images, boxes.cpu(), found, strict=True)
        return [
            self._detections(image, box, best.values.cpu(), best.indices.cpu()) for image, box, best in rows
        ]

    def _embed(self, labels: tuple[str, ...]) -> torch.Tensor:
        """Return embeddings (labels, width), on the device."""
        texts = self._tokenizer.encode_batch([LABEL_PROMPT.format(label) for label in labels])
        ids = torch.tensor([text.ids for text in texts], device=self._device)
        mask = torch.tensor([text.attention_mask for text in texts], device=self._device)
        inner: Any = self._network.owlv2
        pooled = inner.text_model(input_ids=ids, attention_mask=mask).pooler_output
        embedded: torch.Tensor = torch.nn.functional.normalize(inner.text_projection(pooled), dim=-1)
        return embedded

    def _detections(
        self, image: PreparedImage, boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor
    ) -> Detections | ModelError:
        """Return those that score more than the threshold, the highest score first, within the picture."""
        if not np.isfinite(scores.numpy()).all():
            return ModelError(NOT_FINITE)
        kept = np.flatnonzero(scores.numpy() > image.threshold)
        boxes, scores, labels = corners(boxes[kept], image.size), scores[kept], labels[kept]
        order = batched_nms(boxes, scores, labels, self._max_overlap)
        found = [
            Detection(image.labels[label], score, (box[0], box[1], box[2], box[3]))
            for label, score, box in zip(
                labels[order].tolist(), scores[order].tolist(), boxes[order].tolist(), strict=True
            )
        ]
        return Detections(tuple(found))

    def example(self) -> DetectCall:
        return DetectCall(grey(512, 512), ("dog",))


def corners(boxes: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """
    Return left, top, right and bottom in pixels, clipped to the picture.

    Args:
        boxes: centre, width and height relative to the square that the picture was padded to, (N, 4).
    """
    width, height = size
    middle, half = boxes[:, :2], boxes[:, 2:] / 2
    found = torch.cat([middle - half, middle + half], -1) * max(size)
    return found.clamp(min=torch.zeros(4), max=torch.tensor([width, height, width, height]))


def from_settings(settings: Owlv2Settings) -> Owlv2:
    """Load the detector of a table.  Raises `CheckpointError`."""
    return Owlv2(**model_arguments(settings), max_overlap=settings.max_overlap)


def weights(directory: Path) -> list[Path]:
    """Return the weight files of a checkpoint of this kind.  Raises `CheckpointError`."""
    return safetensors_files(directory, MODEL_TYPE)
