"""A small ImageReward in the published layout, whose weights anyone can compute anew."""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from safetensors.torch import save_file

from tests.support import paths

GOLDEN = paths.GOLDEN / "imagereward"
EMBEDDINGS = "blip.text_encoder.embeddings.word_embeddings.weight"


def golden() -> dict[str, Any]:
    """What the reference implementation says, and the tensors that it has."""
    found: dict[str, Any] = json.loads((GOLDEN / "golden.json").read_text())
    return found


def tensor(name: str, shape: list[int]) -> torch.Tensor:
    """
    The tensor of a name: from NumPy's generator of bits, which is the same in all versions.

    Large enough that pictures and prompts matter.
    """
    if name.endswith("position_ids"):
        return torch.arange(shape[-1]).expand(shape).clone()
    bits = np.random.PCG64(crc32(name.encode())).random_raw(int(np.prod(shape))) >> np.uint64(40)
    uniform = bits.astype(np.float64) / 2**23 - 1  # -1 to 1
    norm = ("norm" in name.lower()) and name.endswith("weight")
    spread = 0.1 if len(shape) < 2 else 1.0 if "embed" in name else 2 * np.prod(shape[1:]) ** -0.5
    return torch.from_numpy((norm + spread * uniform).astype(np.float32).reshape(shape))


def tensors() -> dict[str, torch.Tensor]:
    """Those of the reference implementation, by its names."""
    return {name: tensor(name, shape) for name, shape in golden()["tensors"].items()}


def imagereward(directory: Path, weights: dict[str, torch.Tensor] | None = None) -> Path:
    """The checkpoint as it is published, with its words."""
    directory.mkdir(exist_ok=True)
    for name in ("med_config.json", "vocab.txt"):
        shutil.copy(GOLDEN / name, directory)
    torch.save(tensors() if weights is None else weights, directory / "ImageReward.pt")
    return directory


def as_safetensors(directory: Path) -> None:
    """The same weights in the other format."""
    path = directory / "ImageReward.pt"
    held = torch.load(path, weights_only=True)
    save_file({name: each.contiguous() for name, each in held.items()}, path.with_suffix(".safetensors"))
    path.unlink()


def configure(directory: Path, **values: Any) -> None:
    """Other values in its med_config.json; None removes one."""
    path = directory / "med_config.json"
    changed = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({name: value for name, value in changed.items() if value is not None}))


def published(directory: Path) -> Path:
    """The sizes that ImageReward is published in, with weights that are all one number."""
    vision = {128: 1024, 384: 3072, 512: 4096}
    text = {64: 768, 96: 3072, 128: 1024, 40: 512, golden()["tensors"][EMBEDDINGS][0]: 30_524}
    held: dict[str, list[int]] = {}
    for name, shape in golden()["tensors"].items():
        sizes = vision if "vision_proj" in name or "visual_encoder" in name else text
        wide = (
            [*shape[:-1], 768] if name == "mlp.layers.0.weight" else [sizes.get(size, size) for size in shape]
        )
        many = (24, "blocks") if ".blocks." in name else (12, "layer")
        for number in range(many[0]):
            place = re.sub(rf"\.{many[1]}\.1\.", f".{many[1]}.{number}.", name)
            held[place] = shape if name.startswith("mlp.") and "layers.0.w" not in name else wide
    imagereward(directory, {name: torch.zeros(1).expand(shape) for name, shape in held.items()})
    configure(
        directory,
        hidden_size=768,
        intermediate_size=3072,
        max_position_embeddings=512,
        num_attention_heads=12,
        num_hidden_layers=12,
        vocab_size=30_524,
    )
    return directory
