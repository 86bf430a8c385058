"""
An image classifier in an ONNX file, which onnxruntime runs on the CPU.

A graph is data: onnxruntime loads no code with it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from models.checkpoints.locate import hub_file, path_of
from models.core.calls import RewardCall
from models.core.contract import NOT_FINITE, CheckpointError, ModelError, ModelInfo, Prepared
from models.core.examples import IMAGE, OTHER_IMAGE, grey
from models.core.family import Plan
from models.core.messages import in_short
from models.core.outcomes import Reward
from models.families.image_classifier import ONNX, OnnxClassifierSettings
from models.families.image_classifier.labels import Labels, cost_of

PACKAGE = "onnxruntime"
BYTES_PER_NUMBER = 4
TOLERANCE = 1e-3  # rounding of probabilities, whose sum is 1
FLOATS = "tensor(float)"
ERRORS_ONLY = 3  # the log level
NO_PROBABILITIES = (
    'the outputs are no probabilities with the sum 1; perhaps `output` is "logits". '
    "A probability for each label by itself (sigmoid) is not supported"
)
NO_LOGITS = 'the outputs are from 0 to 1, as after a softmax or sigmoid, and `output` is "logits"'


@dataclass(frozen=True, slots=True)
class GraphInput:
    """
    The input of a graph.

    Attributes:
        channels_first: (N, 3, height, width), else (N, height, width, 3).
        alone: a batch has one image.
    """

    name: str
    height: int
    width: int
    channels_first: bool
    alone: bool


def input_of(path: Path, session: Any) -> GraphInput:
    """Return the one input of a graph.  Raises `CheckpointError` if it takes no images."""
    given = session.get_inputs()
    shape = given[0].shape if len(given) == 1 else []
    match [side if isinstance(side, int) else None for side in shape]:
        case [batch, 3, int(height), int(width)]:
            channels_first = True
        case [batch, int(height), int(width), 3]:
            channels_first = False
        case _:
            batch, height, width, channels_first = 0, 0, 0, False
    if batch not in (None, 1) or not height or not width or given[0].type != FLOATS:
        shown = "; ".join(f"{each.type} {each.shape}" for each in given)
        raise CheckpointError(
            f"{path}: the inputs are {shown}; one is needed, float32 pixels (N, height, width, 3) or"
            " (N, 3, height, width) with any N or 1"
        )
    return GraphInput(given[0].name, height, width, channels_first, batch == 1)


class OnnxClassifier:
    """
    A loaded classifier.

    Args:
        settings: of its table.

    Raises:
        CheckpointError: the file is no graph of a classifier, or one with other labels.
    """

    def __init__(self, settings: OnnxClassifierSettings) -> None:
        path = file_of(settings)
        content = path.read_bytes()
        self._session = session_of(path, content, settings.threads)
        self._input, self._settings = input_of(path, self._session), settings
        self._side = (settings.resize, settings.resize) if settings.resize else self._size
        if min(self._side[0] - self._size[0], self._side[1] - self._size[1]) < 0:
            raise CheckpointError(f"{path}: resize is {settings.resize}, less than the graph's {self._size}")
        self._labels = Labels(path, settings.labels, settings.unsafe)
        digest = hashlib.sha256(content).hexdigest()[:12]
        self.info = ModelInfo(
            role=ONNX.role,
            family=ONNX.name,
            id=settings.id or path.stem,
            revision=settings.revision or digest,
            files=digest,
            dtype="float32",
            device="cpu",
            reentrant=True,
        )
        self._check(path)

    @property
    def _size(self) -> tuple[int, int]:
        """Width and height of the input."""
        return self._input.width, self._input.height

    def _check(self, path: Path) -> None:
        """Raise `CheckpointError` unless there is a probability for each label."""
        outputs = self._session.get_outputs()
        if len(outputs) != 1:
            raise CheckpointError(f"{path}: has {len(outputs)} outputs; one is needed")
        known = [self.prepare(RewardCall(image)) for image in (self.example().image, IMAGE, OTHER_IMAGE)]
        try:
            alone, together = [self._run([each]) for each in known], self._run(known)
        except Exception as exc:  # onnxruntime's errors have no class of their own
            raise CheckpointError(f"{path}: fails on pictures: {in_short(exc)}") from exc
        if alone[0].shape != (1, len(self._settings.labels)):
            raise CheckpointError(
                f"{path}: the output for one picture has the shape {alone[0].shape}; there are"
                f" {len(self._settings.labels)} labels"
            )
        for result in map(self._result, np.concatenate(alone).astype(np.float64)):
            if isinstance(result, ModelError):
                raise CheckpointError(f"{path}: {result}")
        if not np.allclose(np.concatenate(alone), together, rtol=TOLERANCE, atol=TOLERANCE):
            raise CheckpointError(f"{path}: three pictures together have other outputs than each alone")
        if self._settings.output == "logits" and together.min() >= 0 and together.max() <= 1:
            raise CheckpointError(f"{path}: {NO_LOGITS}")

    def prepare(self, call: RewardCall) -> Prepared:
        """Squash the picture, and crop the middle: (height, width, 3), uint8.  A prompt is not used."""
        width, height = self._size
        resized = call.image.rgb.resize(self._side, PIL.Image.Resampling.BILINEAR)
        left, top = (resized.width - width) // 2, (resized.height - height) // 2
        pixels = np.asarray(resized.crop((left, top, left + width, top + height)))
        return Prepared(cost_of(width, height), pixels)

    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """Return the results of `Labels` for the graph's probabilities."""
        return [self._result(row) for row in self._run(batch).astype(np.float64)]

    def _run(self, batch: Sequence[Prepared]) -> np.ndarray:
        """Return the graph's outputs (N, labels)."""
        bytes_ = np.stack([prepared.data for prepared in batch])
        ordered = bytes_[..., ::-1] if self._settings.colours == "bgr" else bytes_
        mean, std = (np.array(each, np.float32) for each in (self._settings.mean, self._settings.std))
        pixels = (ordered.astype(np.float32) - mean) / std
        if self._input.channels_first:
            pixels = pixels.transpose(0, 3, 1, 2)
        parts = np.split(pixels, len(pixels)) if self._input.alone else [pixels]
        found = [self._session.run(None, {self._input.name: np.ascontiguousarray(part)})[0] for part in parts]
        return np.concatenate(found)

    def _result(self, row: np.ndarray) -> Reward | ModelError:
        if not np.isfinite(row).all():  # a logit of -inf would be a probability of 0
            return ModelError(NOT_FINITE)
        if self._settings.output == "logits":
            powers = np.exp(row - row.max())
            row = powers / powers.sum()
        elif row.min() < 0 or not abs(row.sum() - 1) <= TOLERANCE:
            return ModelError(NO_PROBABILITIES)
        return self._labels.result(row)

    def example(self) -> RewardCall:
        return RewardCall(grey(384, 256))


def session_of(path: Path, content: bytes, threads: int) -> Any:
    """Load a graph from the *content* of its file.  Raises `CheckpointError`."""
    import onnxruntime  # not installed with every service

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # a file of something else fails in many ways
        raise CheckpointError(f"{path}: is no graph that onnxruntime can run: {in_short(exc)}") from exc


def file_of(settings: OnnxClassifierSettings) -> Path:
    """Return the path of the graph.  Raises `CheckpointError` without such a file, or without onnxruntime."""
    if find_spec(PACKAGE) is None:
        raise CheckpointError(
            f"needs the package {PACKAGE}: pip install '.[onnx]' in the repository's folder"
        )
    path = path_of(settings.checkpoint)
    if not path.is_file():
        raise CheckpointError(f"{settings.checkpoint}: no such file")
    return path


def plan(settings: OnnxClassifierSettings) -> Plan:
    """Return the plan of a graph, without a request.  Raises `CheckpointError`."""
    file = hub_file(settings.checkpoint)
    if file and not file.cached():
        return Plan(file.name, f"{file.shown} of the hub (not in its cache)")
    path = (file and file.cached()) or file_of(settings)
    return Plan(path.stem, str(path), path.stat().st_size // BYTES_PER_NUMBER)


def from_settings(settings: OnnxClassifierSettings) -> OnnxClassifier:
    """Load the classifier of a table.  Raises `CheckpointError`."""
    return OnnxClassifier(settings)
