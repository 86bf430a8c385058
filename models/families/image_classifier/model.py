"""
An image classifier of transformers, such as a ViT (Dosovitskiy et al. 2021).

The network and the image processor are those of transformers, so probabilities are equal.
"""

from collections.abc import Sequence
from pathlib import Path

import PIL.Image
import torch
from transformers import AutoImageProcessor, AutoModelForImageClassification

from models.checkpoints.files import CONFIG, PREPROCESSOR, PROCESSOR, read_json, safetensors_files
from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.pretrained import load_pretrained, load_processor
from models.checkpoints.weights import DTYPES
from models.core.calls import RewardCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.messages import in_short, listed
from models.core.outcomes import Reward
from models.families.image_classifier import ARCHITECTURES, FAMILY, ImageClassifierSettings
from models.families.image_classifier.labels import Labels, cost_of
from models.families.inputs import upload
from models.families.processors import PIXELS, ProcessorPixels
from models.images.pixels import middle

ONE_LABEL = ("single_label_classification", None)
SHORTEST_EDGE = "shortest_edge"


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
        if config.problem_type not in ONE_LABEL:
            raise CheckpointError(
                f"{directory / CONFIG}: problem_type is {config.problem_type!r}; one label is needed"
            )
        if {*config.id2label} != {*range(config.num_labels)}:
            raise CheckpointError(
                f"{directory / CONFIG}: id2label has {listed([*map(str, config.id2label)], 40)}, not"
                f" the outputs 0 to {config.num_labels - 1}"
            )
        names = [str(config.id2label[place]) for place in range(config.num_labels)]
        self._labels = Labels(directory / CONFIG, names, unsafe)
        processor = load_processor(AutoImageProcessor, directory)
        # A strip of 16,000 pixels, resized by its shorter edge, would take gigabytes; its ends are cropped.
        self._cut = SHORTEST_EDGE in dict(getattr(processor, "size", None) or {})
        self._pixels = ProcessorPixels(processor, directory)
        self._device, self._dtype = torch.device(device), DTYPES[dtype]
        files = (CONFIG, PREPROCESSOR, PROCESSOR)
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, reentrant=True)
        self._check(directory)

    def _check(self, directory: Path) -> None:
        """Raise `CheckpointError` if the image processor makes no batch, or none for the network."""
        wide, high = (PIL.Image.new("RGB", size) for size in ((64, 48), (48, 64)))
        if {*self._pixels.inputs(wide)} != {PIXELS}:
            raise CheckpointError(f"{directory}: its image processor makes more than {PIXELS}")
        if self._resized(wide).shape != self._resized(high).shape:
            raise CheckpointError(f"{directory}: its image processor makes pictures of different sizes")
        try:
            self.score([self.prepare(self.example())])
        except ValueError as exc:  # transformers raises it for sizes
            raise CheckpointError(f"{directory}: its image processor does not fit: {in_short(exc)}") from exc

    def _resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        return self._pixels.resized(middle(rgb) if self._cut else rgb)

    def prepare(self, call: RewardCall) -> Prepared:
        """Preprocess the image; a prompt is not used.  The cost is its number of squares."""
        pixels = self._resized(call.image.rgb)
        height, width = pixels.shape[-2:]
        return Prepared(cost_of(width, height), pixels)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """Return the results of `Labels` for the softmax of the network's logits, in float64."""
        pixels = self._pixels.normalised(upload([prepared.data for prepared in batch], self._device))
        logits = self._network(pixel_values=pixels.to(self._dtype)).logits
        return [self._labels.result(row) for row in logits.cpu().double().softmax(-1).numpy()]

    def example(self) -> RewardCall:
        return RewardCall(grey(384, 256))


def from_settings(settings: ImageClassifierSettings) -> ImageClassifier:
    """Load the classifier of a table.  Raises `CheckpointError`."""
    return ImageClassifier(**model_arguments(settings), unsafe=settings.unsafe)
