"""
EditReward (Wu et al. 2026, arXiv 2509.26346): a Qwen2.5-VL with two heads, each on the state of `<|Reward|>`.

Source and edited picture are shown with two instructions, about following and about quality, each with a
head of its own.  Instructions, pixels and heads are those of the released code, with the heads' mean.  It
calls the language model with embeddings alone, so the tokens of pictures have the positions of a text's.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import Qwen2_5_VLModel, Qwen2VLImageProcessorPil

from models.checkpoints.files import first_weights
from models.checkpoints.info import info_of
from models.checkpoints.weights import read_file
from models.core.calls import EditCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.core.settings import TunedSettings
from models.families.editreward import BASE, FAMILY
from models.families.vl_reward import (
    BASE_FILES,
    TOKEN,
    Chat,
    Chatted,
    Network,
    PatchPixels,
    body,
    head_of,
    located,
)

MODEL_TYPE = "qwen2_5_vl"  # MiMo-VL has it, too
WEIGHTS = ("model.pth", "model.safetensors")  # the first that exists is read
HEADS = "rm_heads."
INSTRUCTIONS = [
    Path(__file__).with_name(name).read_text("utf-8") for name in ("following.txt", "quality.txt")
]


def weights_files(directory: Path) -> list[Path]:
    """Return the file with the weights.  Raises `CheckpointError`."""
    return [first_weights(directory, WEIGHTS)]


class EditReward:
    """
    A loaded EditReward; the heads are float32.

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
        self._chats = [Chat(base, text, [TOKEN], ["image", "image"]) for text in INSTRUCTIONS]
        self._pixels = PatchPixels(base, Qwen2VLImageProcessorPil)
        tensors = read_file(path, "cpu", mapped=True)
        names = {name.partition(HEADS)[2].partition(".")[0] for name in tensors if name.startswith(HEADS)}
        if names != {"head_0", "head_1"}:
            listed = ", ".join(sorted(names)) or "none"
            raise CheckpointError(f"{path}: has not the two heads {HEADS}head_0 and head_1, but {listed}")
        rest = {name: each for name, each in tensors.items() if not name.startswith(HEADS)}
        self.network = Network(
            Qwen2_5_VLModel,
            MODEL_TYPE,
            base,
            body(rest),
            path,
            words=self._chats[0].size,
            dtype=dtype,
            device=device,
            flat=True,
        )
        width = self.network.width
        self.heads = [
            head_of(tensors, width, path, f"{HEADS}{name}.").to(device).eval() for name in sorted(names)
        ]
        files = [str(base / name) for name in BASE_FILES]
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, weights=[path])

    def prepare(self, call: EditCall) -> Prepared:
        """Cut both images into patches and tokenise the prompt twice; the cost counts patches and tokens."""
        pictures = [self._pixels.of(image) for image in (call.source, call.image)]
        chats = [self.network.chatted(chat, call.prompt, pictures) for chat in self._chats]
        return Prepared(sum(chat.cost for chat in chats), chats)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """
        Run the network once on both chats of all calls.

        The outputs of a call are the means of both heads' outputs, those about following, and about quality.
        """
        chats: list[Chatted] = [chat for prepared in batch for chat in prepared.data]
        states = self.network.states(chats)[:, 0].reshape(len(batch), 2, -1)
        both = torch.stack([head(states[:, place]) for place, head in enumerate(self.heads)], 1)
        outputs = torch.cat([both.mean(1, keepdim=True), both], 1).flatten(1)
        return [Reward(tuple(row)).checked() for row in outputs.tolist()]

    def example(self) -> EditCall:
        picture = grey(448, 448)
        return EditCall(picture, "make the circle red", picture)


def from_settings(settings: TunedSettings) -> EditReward:
    """Load the model of a table.  Raises `CheckpointError`."""
    arguments, base = located(settings, BASE, WEIGHTS)
    return EditReward(base=base, **arguments)
