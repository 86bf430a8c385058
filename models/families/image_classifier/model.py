"""
An image classifier of transformers, such as a ViT (Dosovitskiy et al. 2021).

The network and the image processor are those of transformers, so probabilities are equal.
"""

from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

import PIL.Image
import torch
from transformers import AutoImageProcessor, AutoModelForImageClassification

from models.checkpoints.files import CONFIG, PREPROCESSOR, PROCESSOR, read_json, safetensors_files
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_pretrained, load_processor
from models.checkpoints.weights import DTYPES
from models.core.calls import RewardCall
from models.core.contract import CheckpointError, Prepared
from models.core.examples import grey
from models.core.messages import in_short, listed
from models.core.outcomes import Reward
from models.families.image_classifier import ARCHITECTURES, FAMILY, ImageClassifierSettings
from models.families.image_classifier.labels import Labels, cost_of
from models.families.inputs import upload
from models.families.processors import PIXELS, ProcessorPixels
from models.images.pixels import MAX_ASPECT, middle

ONE_LABEL = "single_label_classification"
STRIP = (MAX_ASPECT + 2, 1)  # a pixel of each end is cut


def weights(directory: Path) -> list[Path]:
    """Return the weight files of an image classifier.  Raises `CheckpointError` for anything else."""
    names = read_json(directory / CONFIG).get("architectures") or []
    if not any(str(name).endswith(ARCHITECTURES) for name in names):
        raise CheckpointError(f"{directory / CONFIG}: architectures is {names}, not …{ARCHITECTURES[0]}")
    return safetensors_files(directory)


class ImageClassifier:
    """
    A loaded classifier.  Args as in `ModelArguments`; raises `CheckpointError`.

    Args:
        unsafe: names of its labels of unsafe images.
    """

    def __init__(
        self,
        directory: Path,
        *,
        unsafe: Sequence[str],
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
    ) -> None:
        weights(directory)
        network = load_pretrained(AutoModelForImageClassification, directory, DTYPES[dtype])
        self._network = network.to(device).eval()
        config = network.config
        if config.problem_type not in (None, ONE_LABEL):
            raise CheckpointError(
                f"{directory / CONFIG}: problem_type is {config.problem_type!r}; one label is needed"
            )
        self._labels = Labels(directory / CONFIG, names_of(directory / CONFIG, config), unsafe)
        self._pixels = ProcessorPixels(load_processor(AutoImageProcessor, directory), directory)
        self._cut = False
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        files = (CONFIG, PREPROCESSOR, PROCESSOR)
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, reentrant=True)
        self._check(directory)
        # A strip of 16,000 pixels, resized by its shorter edge, would take gigabytes; its ends are cropped.
        self._cut = self._crops_strips()

    def _check(self, directory: Path) -> None:
        """Raise `CheckpointError` if the image processor makes inputs that are no batch of the network."""
        wide, high = (PIL.Image.new("RGB", size) for size in ((64, 48), (48, 64)))
        if {*self._pixels.inputs(wide)} != {PIXELS}:
            raise CheckpointError(f"{directory}: its image processor makes more than {PIXELS}")
        if self._resized(wide).shape != self._resized(high).shape:
            raise CheckpointError(f"{directory}: its image processor makes pictures of different sizes")
        try:
            self.score([self.prepare(self.example())])
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError) as exc:
            raise CheckpointError(f"{directory}: fails with its image processor: {in_short(exc)}") from exc

    def _crops_strips(self) -> bool:
        """Return True if the pixels of a long strip are those of its middle, whatever is at its ends."""
        ends = PIL.Image.linear_gradient("L").resize(STRIP).convert("RGB")
        ends.paste((255, 0, 0), (0, 0, 1, 1))
        return torch.equal(self._pixels.resized(ends), self._pixels.resized(middle(ends)))

    def _resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        return self._pixels.resized(middle(rgb) if self._cut else rgb)

    def prepare(self, call: RewardCall) -> Prepared:
        """Preprocess the image; a prompt is not used.  The cost is its number of squares."""
        pixels = self._resized(call.image.rgb)
        height, width = pixels.shape[-2:]
        return Prepared(cost_of(width, height), pixels)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """Return the results of `Labels` for the softmax of the network's logits, in float64."""
        pixels = self._pixels.normalised(upload([prepared.data for prepared in batch], self._device))
        logits = self._network(pixel_values=pixels.to(self._dtype)).logits.cpu().double()
        finite = logits.isfinite().all(-1, keepdim=True)  # the softmax makes a 0 of a logit of -inf
        return [self._labels.result(row) for row in logits.softmax(-1).where(finite, nan).numpy()]

    def example(self) -> RewardCall:
        return RewardCall(grey(384, 256))


def names_of(path: Path, config: Any) -> list[str]:
    """Return the labels of a configuration, in order.  Raises `CheckpointError`."""
    named = config.id2label
    if {*named} != {*range(config.num_labels)}:
        raise CheckpointError(
            f"{path}: id2label has the numbers {listed([*map(str, named)])}, not 0 to {len(named) - 1}"
        )
    return [str(named[place]) for place in range(config.num_labels)]


def from_settings(settings: ImageClassifierSettings) -> ImageClassifier:
    """Load the classifier of a table.  Raises `CheckpointError`."""
    return ImageClassifier(**model_arguments(settings), unsafe=settings.unsafe)
