"""Small reward models on a vision-language model, in the published layouts, with computed weights."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import (
    AutoTokenizer,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLForConditionalGeneration,
)

from models.core.calls import Call, RewardCall
from models.images.image import Image
from tests.support.paths import GOLDEN

QWEN2_VL, QWEN2_5_VL, QWEN3_VL = (GOLDEN / name for name in ("qwen_vl", "qwen2_5_vl", "qwen3_vl"))
PICTURES = {path.name: Image(path.read_bytes()) for path in (GOLDEN / "imagereward" / "images").iterdir()}


def golden(name: str) -> dict[str, Any]:
    """The outputs of the released code, and the tensors that it has."""
    found: dict[str, Any] = json.loads((GOLDEN / name / "golden.json").read_text())
    return found


def calls(said: Mapping[str, Any]) -> list[RewardCall]:
    """The calls of the recorded scores, in their order."""
    return [
        RewardCall(PICTURES[row["image"]], said["prompts"][row["prompt"]]["text"]) for row in said["scores"]
    ]


def outputs(model: Any, *calls: Call) -> list[list[float]]:
    """The outputs of calls in one batch."""
    return [list(found.outputs) for found in model.score([model.prepare(call) for call in calls])]


def tensor(name: str, shape: list[int]) -> torch.Tensor:
    """
    The tensor of a name: from NumPy's generator of bits, which is the same in all versions.

    Large enough that pictures and prompts matter.
    """
    bits = np.random.PCG64(crc32(name.encode())).random_raw(int(np.prod(shape))) >> np.uint64(40)
    uniform = bits.astype(np.float64) / 2**23 - 1  # -1 to 1
    norm = ("norm" in name and name.endswith("weight")) or ".ln_q.weight" in name
    spread = 0.1 if len(shape) < 2 else 1.0 if "embed_tokens" in name else 2 * np.prod(shape[1:]) ** -0.5
    return torch.from_numpy((norm + spread * uniform).astype(np.float32).reshape(shape))


def tensors(said: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Those of the released code, by its names."""
    return {name: tensor(name, shape) for name, shape in said["tensors"].items()}


def released(name: str, replaced: Mapping[str, torch.Tensor | None]) -> dict[str, torch.Tensor]:
    """The tensors of a reward model, some of them replaced; None removes one."""
    held = {**tensors(golden(name)), **replaced}
    return {name: each for name, each in held.items() if each is not None}


def qwen2_vl(directory: Path) -> Path:
    """The files of a Qwen2-VL."""
    return shutil.copytree(QWEN2_VL, directory, dirs_exist_ok=True)


def hpsv3(directory: Path, **replaced: torch.Tensor | None) -> Path:
    """HPSv3 in one file, with the files of its base model; None removes a tensor."""
    save_file(released("hpsv3", replaced), qwen2_vl(directory) / "HPSv3.safetensors")
    return directory


def qwen3_vl(directory: Path) -> Path:
    """The files of a Qwen3-VL, with the tokenizer of the Qwen2-VL."""
    shutil.copytree(QWEN2_VL, directory, dirs_exist_ok=True)
    shutil.copytree(QWEN3_VL, directory, dirs_exist_ok=True)
    return directory


def hpsv3pp(directory: Path, **replaced: torch.Tensor | None) -> Path:
    """HPSv3++ in one file, with the files of its base model; None removes a tensor."""
    torch.save(released("hpsv3pp", replaced), qwen3_vl(directory) / "hpsv3++.pth")
    return directory


def qwen2_5_vl(directory: Path) -> Path:
    """The files of a Qwen2.5-VL, with the tokenizer of the Qwen2-VL."""
    shutil.copytree(QWEN2_VL, directory, dirs_exist_ok=True)
    shutil.copytree(QWEN2_5_VL, directory, dirs_exist_ok=True)
    return directory


VQA_KINDS = {
    "qwen2_5_vl": (qwen2_5_vl, Qwen2_5_VLForConditionalGeneration),
    "qwen3_vl": (qwen3_vl, Qwen3VLForConditionalGeneration),
}
WORDS = ("Yes", "No", "yes", "no", "excellent", "bad", "very")  # each is one token


def qwen_vl(
    directory: Path, kind: str = "qwen3_vl", text: Mapping[str, Any] = {}, **replaced: torch.Tensor | None
) -> Path:
    """
    A VLM with the language model's head, by the names of its published files; None removes a tensor.

    Args:
        text: other values in the configuration of the language model.
    """
    make, network = VQA_KINDS[kind]
    make(directory)
    if text:
        configure(directory, text_config={**configuration(directory)["text_config"], **text})
    tokenizer = AutoTokenizer.from_pretrained(directory)
    tokenizer.add_tokens([*WORDS])
    tokenizer.save_pretrained(directory)
    with torch.device("meta"):
        shapes = network(network.config_class.from_pretrained(directory)).state_dict()
    held = {name: tensor(name, [*each.shape]) for name, each in shapes.items()}
    if kind == "qwen2_5_vl":
        held = {
            re.sub(r"^model\.language_model", "model", re.sub(r"^model\.visual", "visual", name)): each
            for name, each in held.items()
        }
    held["lm_head.weight"] *= 3  # likelihoods differ by more than rounding
    kept = {name: each for name, each in {**held, **replaced}.items() if each is not None}
    save_file(kept, directory / "model.safetensors", {"format": "pt"})
    return directory


def editreward(directory: Path, **replaced: torch.Tensor | None) -> Path:
    """EditReward in one file, with the files of its base model; None removes a tensor."""
    save_file(released("editreward", replaced), qwen2_5_vl(directory) / "model.safetensors")
    return directory


def videoalign(directory: Path, **replaced: torch.Tensor | None) -> Path:
    """VideoAlign with the files of its base model; None removes a tensor."""
    (qwen2_vl(directory) / "model_config.json").write_text(json.dumps(golden("videoalign")["config"]))
    (directory / "checkpoint-20").mkdir(exist_ok=True)
    torch.save(released("videoalign", replaced), directory / "checkpoint-20" / "model.pth")
    return directory


def frames(said: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[Image, ...]:
    """The frames of a recorded score: parts of a picture, which moves; what is outside of it is black."""
    video = said["videos"][row["video"]]
    picture, (width, height), (right, down) = PICTURES[video["image"]].rgb, video["size"], video["step"]
    corners = [(number * right, number * down) for number in row["frames"]]
    return tuple(Image.of(picture.crop((x, y, x + width, y + height))) for x, y in corners)


def configure(directory: Path, **values: Any) -> None:
    """Other values in the configuration of the base model."""
    (directory / "config.json").write_text(json.dumps({**configuration(directory), **values}))


def configuration(directory: Path) -> dict[str, Any]:
    """The configuration of the base model."""
    found: dict[str, Any] = json.loads((directory / "config.json").read_text())
    return found


def set_in(directory: Path, section: str, **values: Any) -> None:
    """Other settings in a section of a VideoAlign; None at all removes it."""
    path = directory / "model_config.json"
    said = json.loads(path.read_text())
    if values:
        said[section] |= values
    else:
        del said[section]
    path.write_text(json.dumps(said))
