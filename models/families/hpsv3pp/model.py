"""
HPSv3++ (Liu et al. 2026, arXiv 2606.14657): a Qwen3-VL with a head on the modulated state of `<|Reward|>`.

Two numbers modulate it (FiLM): the generator's capability, which a small network infers from the same state,
and the progress of the generator's training by rewards, which the call has.  The released code infers one
capability for all pictures of a batch; here each call has its own, as in a batch of one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import nn
from transformers import Qwen2VLImageProcessor, Qwen3VLModel

from models.checkpoints.weights import mismatch
from models.core.calls import ProgressCall
from models.core.contract import CheckpointError, Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.families.hpsv3pp import FAMILY
from models.families.reward_heads import HEAD_PREFIX, relu_head
from models.families.vl_reward import Chatted, VlReward

INSTRUCTION = Path(__file__).with_name("instruction.txt").read_text("utf-8")
CONDITION_WEIGHT = "cond_encoder.0.weight"  # its rows are the width of the condition
HEAD_PREFIXES = (HEAD_PREFIX, "cond_encoder.", "film_gen.", "cap_encoder.")


class Capability(nn.Module):
    """The capability of a picture's generator, 0 to 1; `pool_attn` is for groups of pictures only."""

    def __init__(self, width: int, condition: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, condition)
        self.pool_attn = nn.Linear(condition, 1)
        self.out_proj = nn.Linear(condition, 1)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Map states (N, width) to capabilities (N)."""
        found: torch.Tensor = torch.sigmoid(self.out_proj(self.proj(states)))[:, 0]
        return found


class Modulated(nn.Module):
    """The head on states that capability and progress modulate, by the names of the released code."""

    def __init__(self, width: int, condition: int, head: nn.Module) -> None:
        super().__init__()
        self.cond_encoder = nn.Sequential(nn.Linear(2, condition), nn.GELU(), nn.Linear(condition, condition))
        self.film_gen = nn.Sequential(nn.Linear(condition, width), nn.ReLU(), nn.Linear(width, 2 * width))
        self.cap_encoder = Capability(width, condition)
        self.rm_head = head

    def forward(self, states: torch.Tensor, progress: torch.Tensor) -> torch.Tensor:
        """
        Compute outputs.

        Args:
            states: (N, width), float32.
            progress: (N), 0 to 1.

        Returns:
            (N, 3) means, logarithms of deviations, and capabilities.
        """
        capability = self.cap_encoder(states)
        condition = self.cond_encoder(torch.stack([capability, progress], -1))
        factor, summand = self.film_gen(condition).chunk(2, -1)
        outputs = self.rm_head(states * (1.0 + factor) + summand)
        return torch.cat([outputs, capability[:, None]], -1)


def modulated(tensors: Mapping[str, torch.Tensor], width: int, place: Path) -> Modulated:
    """Build the head from the tensors of a checkpoint.  Raises `CheckpointError` if they do not fit."""
    held = {name: each for name, each in tensors.items() if name.startswith(HEAD_PREFIXES)}
    first = held.get(CONDITION_WEIGHT)
    if first is None or first.ndim != 2 or 0 in first.shape:
        raise CheckpointError(
            f"{place}: not the head of HPSv3++: {CONDITION_WEIGHT} is missing, or no matrix"
        )
    head = Modulated(width, len(first), relu_head(tensors, width, place))
    if wrong := mismatch(held, head.state_dict()):
        raise CheckpointError(f"{place}: not the head of HPSv3++: {wrong}")
    head.load_state_dict(held)
    return head.float()


class Hpsv3pp(VlReward):
    """A loaded HPSv3++."""

    family = FAMILY
    weights = ("hpsv3++.safetensors", "hpsv3++.pth")
    network_class, model_type = Qwen3VLModel, "qwen3_vl"
    processor_class = Qwen2VLImageProcessor
    instructions = (INSTRUCTION,)
    flat = False
    head_names = HEAD_PREFIXES

    def _head_in(self, tensors: Mapping[str, torch.Tensor], path: Path) -> Modulated:
        return modulated(tensors, self.network.width, path)

    def prepare(self, call: ProgressCall) -> Prepared:
        """Cut the image into patches and tokenise the prompt; the cost counts patches and tokens."""
        chat = self.network.chatted(self._chats[0], call.prompt, [self._pixels.of(call.image)])
        return Prepared(chat.cost, (chat, call.progress))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward]:
        """Run the network once on the chats of all calls."""
        chats: list[Chatted] = [prepared.data[0] for prepared in batch]
        states = self.network.states(chats)[:, 0]
        progress = torch.tensor(
            [prepared.data[1] for prepared in batch], dtype=torch.float32, device=states.device
        )
        outputs = self.head(states, progress)
        return [Reward(tuple(row)) for row in outputs.tolist()]

    def example(self) -> ProgressCall:
        return ProgressCall(grey(448, 448), "a red circle left of a blue square")


# The names in the declaration.
weights_files, from_settings = Hpsv3pp.weights_files, Hpsv3pp.from_settings
