"""
HPSv3 (Ma et al. 2025, arXiv 2508.03789): a Qwen2-VL with a head on the state of the token `<|Reward|>`.

Instruction, pixels and head are those of the released code (package hpsv3 1.0.0).  It calls the language
model with embeddings alone, so the tokens of a picture have the positions of a text's.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import Qwen2VLImageProcessorPil, Qwen2VLModel

from models.checkpoints.files import first_weights
from models.checkpoints.info import info_of
from models.checkpoints.weights import read_file
from models.core.calls import RewardCall
from models.core.contract import ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.core.settings import TunedSettings
from models.families.hpsv3 import BASE, FAMILY
from models.families.vl_reward import (
    BASE_FILES,
    HEAD,
    TOKEN,
    Chat,
    Chatted,
    Network,
    PatchPixels,
    body,
    head_of,
    located,
)

MODEL_TYPE = "qwen2_vl"
WEIGHTS = ("HPSv3.safetensors", "HPSv3.pth")  # the first that exists is read
INSTRUCTION = Path(__file__).with_name("instruction.txt").read_text("utf-8")


def weights_files(directory: Path) -> list[Path]:
    """Return the file with the weights.  Raises `CheckpointError`."""
    return [first_weights(directory, WEIGHTS)]


class Hpsv3:
    """
    A loaded HPSv3; the head is float32.

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
        [path] = weights_files(directory)
        self._chat = Chat(base, INSTRUCTION, [TOKEN], ["image"])
        self._pixels = PatchPixels(base, Qwen2VLImageProcessorPil)
        tensors = read_file(path, "cpu", mapped=True)
        rest = {name: each for name, each in tensors.items() if not name.startswith(HEAD)}
        self.network = Network(
            Qwen2VLModel,
            MODEL_TYPE,
            base,
            body(rest),
            path,
            words=self._chat.size,
            dtype=dtype,
            device=device,
            flat=True,
        )
        self.head = head_of(tensors, self.network.width, path).to(device).eval()
        files = [str(base / name) for name in BASE_FILES]
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, weights=[path])

    def prepare(self, call: RewardCall) -> Prepared:
        """Cut the image into patches and tokenise the prompt; the cost counts patches and tokens."""
        chat = self.network.chatted(self._chat, call.prompt, [self._pixels.of(call.image)])
        return Prepared(chat.cost, chat)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """Run the network once on the chats of all calls."""
        chats: list[Chatted] = [prepared.data for prepared in batch]
        outputs = self.head(self.network.states(chats)[:, 0])
        return [Reward(tuple(row)).checked() for row in outputs.tolist()]

    def example(self) -> RewardCall:
        return RewardCall(grey(448, 448), "a red circle left of a blue square")


def from_settings(settings: TunedSettings) -> Hpsv3:
    """Load the model of a table.  Raises `CheckpointError`."""
    arguments, base = located(settings, BASE, WEIGHTS)
    return Hpsv3(base=base, **arguments)
