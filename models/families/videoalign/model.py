"""
VideoAlign (Liu et al. 2025, arXiv 2501.13918): a Qwen2-VL with a linear head on the states of three tokens.

A video is read once, with one instruction that has a token each for visual quality, motion quality and text
alignment.  Instruction, pixels, head and normalisation are those of the released code.  It calls the language
model with embeddings alone, so the tokens of a video have the positions of a text's.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch.nn.functional import interpolate
from transformers import Qwen2VLImageProcessorPil, Qwen2VLModel

from models.checkpoints.info import info_of
from models.checkpoints.weights import DTYPES, read_file
from models.core.calls import VideoCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.core.settings import TunedSettings
from models.families.videoalign import BASE, FAMILY
from models.families.videoalign.layout import PATTERNS, SETTINGS, Norm, merged, read_config, weights_files
from models.families.vl_reward import (
    BASE_FILES,
    FACTOR,
    Chat,
    Chatted,
    Network,
    Patches,
    PatchPixels,
    body,
    located,
    sides,
)
from models.images.image import Image

MODEL_TYPE = "qwen2_vl"
INSTRUCTION = Path(__file__).with_name("instruction.txt").read_text("utf-8")
TOKENS = ("<|VQ_reward|>", "<|MQ_reward|>", "<|TA_reward|>")
HEAD = "rm_head.weight"
LEAST = 128 * FACTOR * FACTOR  # pixels of a frame
CHANNELS = 3


class FramePixels(PatchPixels):
    """
    Frames as patches, each of several frames in succession.

    Args:
        most: pixels of a frame.
    """

    def __init__(self, directory: Path, kind: Any, most: int) -> None:
        super().__init__(directory, kind, most)
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
        wanted = sides(rgb.size, LEAST, self._pixels)
        found = interpolate(pixels, wanted, mode="bicubic", align_corners=False, antialias=True)
        return PIL.Image.fromarray(found[0].clamp(0, 255).round().byte().movedim(0, -1).numpy())


class VideoAlign:
    """
    A loaded VideoAlign; the head is float32.

    Args as in `ModelArguments`, and the directory of the base model's files if that is another one.  Raises
    `CheckpointError`.
    """

    def __init__(
        self,
        directory: Path,
        base: Path | None = None,
        *,
        dtype: str,
        device: str,
        id: str = "",
        revision: str = "",
    ) -> None:
        base = base or directory
        config, [path] = read_config(directory), weights_files(directory)
        self._norm = config.inference_config or Norm()
        self._chat = Chat(base, INSTRUCTION, TOKENS, ["video"])
        self._pixels = FramePixels(base, Qwen2VLImageProcessorPil, config.data_config.max_frame_pixels)
        held = read_file(path, "cpu", mapped=True)
        tensors = merged(held, config.peft_lora_config, DTYPES[dtype], path)
        head = tensors.pop(HEAD, torch.zeros(0))
        self.network = Network(
            Qwen2VLModel,
            MODEL_TYPE,
            base,
            body(tensors),
            path,
            words=self._chat.size,
            dtype=dtype,
            device=device,
            flat=True,
            video=True,
        )
        wanted = (len(TOKENS), self.network.width)
        if head.shape != wanted:
            raise CheckpointError(f"{path}: {HEAD} has the shape {(*head.shape,)}, not {wanted}")
        self.head = head.float().to(device)
        files = [SETTINGS, *(str(base / name) for name in BASE_FILES)]
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, weights=[path])

    def prepare(self, call: VideoCall) -> Prepared:
        """Cut the frames into patches and tokenise the prompt; the cost counts patches and tokens."""
        chat = self.network.chatted(self._chat, call.prompt, [self._pixels.of_all(call.frames)])
        return Prepared(chat.cost, chat)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """Run the network once on the chats of all calls; the outputs are the sum, and its three parts."""
        chats: list[Chatted] = [prepared.data for prepared in batch]
        found = (self.network.states(chats) * self.head).sum(-1)  # of each token one row of the head
        rows = map(self._norm.of, found.tolist())
        return [Reward((sum(row), *row)).checked() for row in rows]

    def example(self) -> VideoCall:
        return VideoCall((grey(448, 448),) * 4, "a red circle rolls to the left")


def from_settings(settings: TunedSettings) -> VideoAlign:
    """Load the model of a table.  Raises `CheckpointError`."""
    arguments, base = located(settings, BASE, PATTERNS)
    return VideoAlign(base=base, **arguments)
