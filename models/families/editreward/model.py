"""
EditReward (Wu et al. 2026, arXiv 2509.26346): a Qwen2.5-VL with two heads, each on the state of `<|Reward|>`.

Source and edited picture are shown with two instructions, about following and about quality, each with a
head of its own.  Instructions, pixels and heads are those of the released code, with the heads' mean.  It
calls the language model with embeddings alone, so the tokens of pictures have the positions of a text's.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import nn
from transformers import Qwen2_5_VLModel, Qwen2VLImageProcessorPil

from models.core.calls import EditCall
from models.core.contract import CheckpointError, Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.families.editreward import FAMILY
from models.families.reward_heads import relu_head
from models.families.vl_reward import Chatted, VlReward

HEADS_PREFIX = "rm_heads."
HEAD_NAMES = ("head_0", "head_1")
INSTRUCTIONS = tuple(
    Path(__file__).with_name(name).read_text("utf-8") for name in ("following.txt", "quality.txt")
)


class EditReward(VlReward):
    """A loaded EditReward, with two heads and a chat for each."""

    family = FAMILY
    weights = ("model.pth", "model.safetensors")
    network_class, model_type = Qwen2_5_VLModel, "qwen2_5_vl"  # MiMo-VL has this type, too
    processor_class = Qwen2VLImageProcessorPil
    instructions = INSTRUCTIONS
    media = ("image", "image")
    head_names = (HEADS_PREFIX,)
    head: nn.ModuleList

    def _tensors_in(self, path: Path, dtype: str) -> Mapping[str, torch.Tensor]:
        tensors = super()._tensors_in(path, dtype)
        names = {
            name.partition(HEADS_PREFIX)[2].partition(".")[0]
            for name in tensors
            if name.startswith(HEADS_PREFIX)
        }
        if names != {*HEAD_NAMES}:
            listed = ", ".join(sorted(names)) or "none"
            raise CheckpointError(
                f"{path}: has not the two heads {HEADS_PREFIX}head_0 and head_1, but {listed}"
            )
        return tensors

    def _head_in(self, tensors: Mapping[str, torch.Tensor], path: Path) -> nn.ModuleList:
        width = self.network.width
        return nn.ModuleList(relu_head(tensors, width, path, f"{HEADS_PREFIX}{name}.") for name in HEAD_NAMES)

    def prepare(self, call: EditCall) -> Prepared:
        """Cut both images into patches and tokenise the prompt twice; the cost counts patches and tokens."""
        images = [self._pixels.of(image) for image in (call.source, call.image)]
        chats = [self.network.chatted(chat, call.prompt, images) for chat in self._chats]
        return Prepared(sum(chat.cost for chat in chats), chats)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """
        Run the network once on both chats of all calls.

        The outputs of a call are the means of both heads' outputs, those about following, and about quality.
        """
        chats: list[Chatted] = [chat for prepared in batch for chat in prepared.data]
        states = self.network.states(chats)[:, 0].reshape(len(batch), 2, -1)
        both = torch.stack([head(states[:, place]) for place, head in enumerate(self.head)], 1)
        outputs = torch.cat([both.mean(1, keepdim=True), both], 1).flatten(1)
        return [Reward(tuple(row)) for row in outputs.tolist()]

    def example(self) -> EditCall:
        example = grey(448, 448)
        return EditCall(example, "make the circle red", example)


# The names in the declaration.
weights_files, from_settings = EditReward.weights_files, EditReward.from_settings
