"""
VideoAlign (Liu et al. 2025, arXiv 2501.13918): a Qwen2-VL with a linear head on the states of three tokens.

A video is read once, with one instruction that has a token each for visual quality, motion quality and text
alignment.  Instruction, pixels, head and normalisation are those of the released code.  It calls the language
model with embeddings alone, so the tokens of a video have the positions of a text's.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import PIL.Image
import torch
from pydantic import BaseModel, Field, FiniteFloat, ValidationError
from torch import nn
from torch.nn.functional import interpolate
from transformers import Qwen2VLImageProcessorPil, Qwen2VLModel

from models.checkpoints.files import read_json
from models.checkpoints.weights import DTYPES
from models.core.calls import VideoCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.families.videoalign import FAMILY
from models.families.vl_inputs import SIDE_FACTOR, Patches, PatchPixels, sides
from models.families.vl_reward import Chatted, VlReward
from models.images.image import Image

# --- the published layout: `model_config.json`, and a checkpoint whose LoRA is not merged -------

SETTINGS = "model_config.json"
WEIGHTS = "model.pth"
STEPS = f"checkpoint-*/{WEIGHTS}"
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
        for path in directory.glob(STEPS)
        if (found := STEP_FOLDER.fullmatch(path.parent.name))
    }
    if not steps:
        raise CheckpointError(f"{directory}: no weights found (looked for {STEPS})")
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


# --- the model ----------------------------------------------------------------------------------

INSTRUCTION = Path(__file__).with_name("instruction.txt").read_text("utf-8")
REWARD_TOKENS = ("<|VQ_reward|>", "<|MQ_reward|>", "<|TA_reward|>")
HEAD_WEIGHT = "rm_head.weight"
MIN_FRAME_PIXELS = 128 * SIDE_FACTOR * SIDE_FACTOR  # pixels of a frame
CHANNELS = 3


class FramePixels(PatchPixels):
    """
    Frames as patches, each of several frames in succession.

    Args:
        most: pixels of a frame.
    """

    def __init__(self, directory: Path, kind: Any, most: int) -> None:
        super().__init__(directory, kind)
        self._most = most
        self._together: int = self._processor.temporal_patch_size

    def of_all(self, frames: Sequence[Image]) -> Patches:
        """Return the patches of a video; its last frame is repeated to fill them.  Raises `ModelError`."""
        shown = [self.of(frame) for frame in frames]
        if len({each.grid for each in shown}) > 1:
            raise ModelError("the frames are of different sizes")
        shown += shown[-1:] * (-len(shown) % self._together)
        groups = [shown[start : start + self._together] for start in range(0, len(shown), self._together)]
        pixels = [torch.stack([each.pixels for each in group], 2).flatten(1) for group in groups]
        _, height, width = shown[0].grid
        return Patches(torch.cat(pixels), (len(groups), height, width))

    def _made(self, rgb: PIL.Image.Image) -> Patches:
        """Return the patches of one frame; the processor repeats a single one."""
        pixels, grid = super()._made(rgb)
        return Patches(pixels.view(len(pixels), CHANNELS, self._together, -1)[:, :, 0].clone(), grid)

    def _resized(self, rgb: PIL.Image.Image) -> PIL.Image.Image:
        """Return *rgb* resized like a tensor, which rounds once."""
        pixels = torch.from_numpy(np.array(rgb)).movedim(-1, 0)[None].float()
        wanted = sides(rgb.size, MIN_FRAME_PIXELS, self._most)
        found = interpolate(pixels, wanted, mode="bicubic", align_corners=False, antialias=True)
        return PIL.Image.fromarray(found[0].clamp(0, 255).round().byte().movedim(0, -1).numpy())


class TokenHead(nn.Module):
    """A linear head with a row of weights for each reward token, (tokens, width)."""

    weight: torch.Tensor

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Map states (N, tokens, width) to outputs (N, tokens)."""
        outputs: torch.Tensor = (states * self.weight).sum(-1)
        return outputs


class VideoAlign(VlReward):
    """A loaded VideoAlign."""

    family = FAMILY
    settings_files, weights = (SETTINGS,), (STEPS,)
    weights_files = staticmethod(weights_files)
    network_class, model_type = Qwen2VLModel, "qwen2_vl"
    processor_class = Qwen2VLImageProcessorPil
    instructions = (INSTRUCTION,)
    reward_tokens, media = REWARD_TOKENS, ("video",)
    head_names = (HEAD_WEIGHT,)
    _pixels: FramePixels

    def _read_settings(self, directory: Path) -> None:
        self._config = read_config(directory)
        self._norm = self._config.inference_config or OutputNorm()

    def _pixels_in(self, base: Path) -> FramePixels:
        return FramePixels(base, self.processor_class, self._config.data_config.max_frame_pixels)

    def _tensors_in(self, path: Path, dtype: str) -> Mapping[str, torch.Tensor]:
        tensors = super()._tensors_in(path, dtype)
        return merged(tensors, self._config.peft_lora_config, DTYPES[dtype], path)

    def _head_in(self, tensors: Mapping[str, torch.Tensor], path: Path) -> TokenHead:
        weight = tensors.get(HEAD_WEIGHT, torch.zeros(0))
        wanted = (len(REWARD_TOKENS), self.network.width)
        if weight.shape != wanted:
            raise CheckpointError(f"{path}: {HEAD_WEIGHT} has the shape {(*weight.shape,)}, not {wanted}")
        return TokenHead(weight.float())

    def prepare(self, call: VideoCall) -> Prepared:
        """Cut the frames into patches and tokenise the prompt; the cost counts patches and tokens."""
        chat = self.network.chatted(self._chats[0], call.prompt, [self._pixels.of_all(call.frames)])
        return Prepared(chat.cost, chat)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """Run the network once on the chats of all calls; the outputs are the sum, and its three parts."""
        chats: list[Chatted] = [prepared.data for prepared in batch]
        rows = map(self._norm.of, self.head(self.network.states(chats)).tolist())
        return [Reward((sum(row), *row)) for row in rows]

    def example(self) -> VideoCall:
        return VideoCall((grey(448, 448),) * 4, "a red circle rolls to the left")


from_settings = VideoAlign.from_settings  # the name in the declaration
