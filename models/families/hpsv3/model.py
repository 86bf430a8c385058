"""
HPSv3 (Ma et al. 2025, arXiv 2508.03789): a Qwen2-VL with a head on the state of the token `<|Reward|>`.

Instruction, pixels and head are those of the released code (package hpsv3 1.0.0).  It calls the language
model with embeddings alone, so the tokens of a picture have the positions of a text's.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import Qwen2VLImageProcessorPil, Qwen2VLModel

from models.core.calls import RewardCall
from models.core.contract import Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.families.hpsv3 import FAMILY
from models.families.vl_reward import Chatted, VlReward

INSTRUCTION = Path(__file__).with_name("instruction.txt").read_text("utf-8")


class Hpsv3(VlReward):
    """A loaded HPSv3."""

    family = FAMILY
    weights = ("HPSv3.safetensors", "HPSv3.pth")
    network_class, model_type = Qwen2VLModel, "qwen2_vl"
    processor_class = Qwen2VLImageProcessorPil
    instructions = (INSTRUCTION,)

    def prepare(self, call: RewardCall) -> Prepared:
        """Cut the image into patches and tokenise the prompt; the cost counts patches and tokens."""
        chat = self.network.chatted(self._chats[0], call.prompt, [self._pixels.of(call.image)])
        return Prepared(chat.cost, chat)

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """Run the network once on the chats of all calls."""
        chats: list[Chatted] = [prepared.data for prepared in batch]
        outputs = self.head(self.network.states(chats)[:, 0])
        return [Reward(tuple(row)) for row in outputs.tolist()]

    def example(self) -> RewardCall:
        return RewardCall(grey(448, 448), "a red circle left of a blue square")


# The names in the declaration.
weights_files, from_settings = Hpsv3.weights_files, Hpsv3.from_settings
