"""The published layout of VideoAlign: `model_config.json`, and a checkpoint whose LoRA is not merged."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from models.checkpoints.files import read_json
from models.core.contract import CheckpointError

SETTINGS = "model_config.json"
WEIGHTS = "model.pth"
PATTERNS = (SETTINGS, f"checkpoint-*/{WEIGHTS}")
STEP_FOLDER = re.compile(r"checkpoint-(\d+)")

PEFT_NAMES = re.compile(r"^base_model\.model\.|\.base_layer(?=\.)")  # PEFT adds these parts to a name
LORA_NAME = re.compile(r"(.+)\.lora_([AB])\.default\.weight")

Deviation = Annotated[FiniteFloat, Field(gt=0)]


class Lora(BaseModel):
    """Settings of the LoRA in a checkpoint."""

    lora_enable: bool
    lora_r: int = Field(gt=0)
    lora_alpha: FiniteFloat
    use_rslora: bool = False

    @property
    def scale(self) -> float:
        """The factor of the product of both matrices."""
        return self.lora_alpha / (self.lora_r**0.5 if self.use_rslora else self.lora_r)


class Trained(BaseModel):
    """How the network reads a video and its prompt."""

    output_dim: Literal[3]
    use_special_tokens: Literal[True]


class Data(BaseModel):
    """Pixels of a frame at most, and the kind of instruction."""

    max_frame_pixels: int = Field(gt=0)
    prompt_template_type: Literal["detailed_special"]


class OutputNorm(BaseModel):
    """Means and deviations of the outputs, which the released code subtracts and divides by."""

    VQ_mean: FiniteFloat = 0.0
    VQ_std: Deviation = 1.0
    MQ_mean: FiniteFloat = 0.0
    MQ_std: Deviation = 1.0
    TA_mean: FiniteFloat = 0.0
    TA_std: Deviation = 1.0

    def of(self, outputs: list[float]) -> list[float]:
        """Return the normalised *outputs*."""
        means = self.VQ_mean, self.MQ_mean, self.TA_mean
        deviations = self.VQ_std, self.MQ_std, self.TA_std
        return [(each - mean) / std for each, mean, std in zip(outputs, means, deviations, strict=True)]


class Config(BaseModel):
    """What this family reads of `model_config.json`."""

    data_config: Data
    model_config_: Trained = Field(alias="model_config")
    peft_lora_config: Lora
    inference_config: OutputNorm | None = None


def read_config(directory: Path) -> Config:
    """Read the settings of a checkpoint.  Raises `CheckpointError`."""
    path = directory / SETTINGS
    try:
        return Config.model_validate(read_json(path))
    except ValidationError as exc:
        first = exc.errors(include_input=False)[0]
        raise CheckpointError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from exc


def weights_files(directory: Path) -> list[Path]:
    """Return the weights of the last step.  Raises `CheckpointError`."""
    steps = {
        int(found[1]): path
        for path in directory.glob(f"checkpoint-*/{WEIGHTS}")
        if (found := STEP_FOLDER.fullmatch(path.parent.name))
    }
    if not steps:
        raise CheckpointError(f"{directory}: no weights found (looked for {PATTERNS[-1]})")
    return [steps[max(steps)]]


def merged(
    tensors: Mapping[str, torch.Tensor], lora: Lora, dtype: torch.dtype, place: Path
) -> dict[str, torch.Tensor]:
    """
    Return *tensors* by the network's own names, each LoRA added to its weight in float32.

    Args:
        dtype: of the weights with a LoRA.
        place: file of the tensors, in errors.

    Raises:
        CheckpointError: a matrix of a LoRA has no fitting weight or no other matrix.
    """
    plain = dict[str, torch.Tensor]()
    parts = dict[str, dict[str, torch.Tensor]]()
    for name, tensor in tensors.items():
        own = PEFT_NAMES.sub("", name)
        if found := LORA_NAME.fullmatch(own):
            parts.setdefault(f"{found[1]}.weight", {})[found[2]] = tensor
        else:
            plain[own] = tensor
    for name, pair in parts.items():
        try:
            added = pair["B"].float() @ pair["A"].float() * lora.scale
            plain[name] = (plain[name].float() + added).to(dtype)
        except (KeyError, RuntimeError):
            raise CheckpointError(f"{place}: the LoRA of {name} does not fit") from None
    return plain
