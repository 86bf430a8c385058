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

from models.checkpoints.files import first_weights
from models.checkpoints.info import info_of
from models.checkpoints.weights import mismatch, read_file
from models.core.calls import ProgressCall
from models.core.contract import CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.core.settings import TunedSettings
from models.families.hpsv3pp import BASE, FAMILY
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

MODEL_TYPE = "qwen3_vl"
WEIGHTS = ("hpsv3++.safetensors", "hpsv3++.pth")  # the first that exists is read
INSTRUCTION = Path(__file__).with_name("instruction.txt").read_text("utf-8")
FIRST = "cond_encoder.0.weight"  # its rows are the width of the condition
PARTS = (HEAD, "cond_encoder.", "film_gen.", "cap_encoder.")


def weights_files(directory: Path) -> list[Path]:
    """Return the file with the weights.  Raises `CheckpointError`."""
    return [first_weights(directory, WEIGHTS)]


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
    held = {name: each for name, each in tensors.items() if name.startswith(PARTS)}
    first = held.get(FIRST)
    if first is None or first.ndim != 2 or 0 in first.shape:
        raise CheckpointError(f"{place}: not the head of HPSv3++: {FIRST} is missing, or no matrix")
    head = Modulated(width, len(first), head_of(tensors, width, place))
    if wrong := mismatch(held, head.state_dict()):
        raise CheckpointError(f"{place}: not the head of HPSv3++: {wrong}")
    head.load_state_dict(held)
    return head.float()


class Hpsv3pp:
    """
    A loaded HPSv3++; the head is float32.

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
        self._pixels = PatchPixels(base, Qwen2VLImageProcessor)
        tensors = read_file(path, "cpu", mapped=True)
        rest = {name: each for name, each in tensors.items() if not name.startswith(PARTS)}
        self.network = Network(
            Qwen3VLModel,
            MODEL_TYPE,
            base,
            body(rest),
            path,
            words=self._chat.size,
            dtype=dtype,
            device=device,
        )
        self.head = modulated(tensors, self.network.width, path).to(device).eval()
        self._device = torch.device(device)
        files = [str(base / name) for name in BASE_FILES]
        self.info = info_of(FAMILY, directory, files, dtype, device, id, revision, weights=[path])

    def prepare(self, call: ProgressCall) -> Prepared:
        """Cut the image into patches and tokenise the prompt; the cost counts patches and tokens."""
        chat = self.network.chatted(self._chat, call.prompt, [self._pixels.of(call.image)])
        return Prepared(chat.cost, (chat, call.progress))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """Run the network once on the chats of all calls."""
        chats: list[Chatted] = [prepared.data[0] for prepared in batch]
        progress = torch.tensor([prepared.data[1] for prepared in batch], device=self._device)
        outputs = self.head(self.network.states(chats)[:, 0], progress)
        return [Reward(tuple(row)).checked() for row in outputs.tolist()]

    def example(self) -> ProgressCall:
        return ProgressCall(grey(448, 448), "a red circle left of a blue square")


def from_settings(settings: TunedSettings) -> Hpsv3pp:
    """Load the model of a table.  Raises `CheckpointError`."""
    arguments, base = located(settings, BASE, WEIGHTS)
    return Hpsv3pp(base=base, **arguments)
