"""
CLIP-FlanT5's forward pass for serving: the numbers of `Network` with less work.

Each image and each question about it is encoded once, all its answers are decoded from that, and the head is
computed for real tokens of answers only.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from models.families.clip_flant5.network import Network
from models.families.clip_flant5.t5 import Decoder, Encoder
from models.families.clip_flant5.tensors import Weights
from models.families.clip_flant5.tokenizer import PAD, Text
from models.families.clip_flant5.vision import Linear, VisionTower
from models.families.traced import Traced, pays_on

# Lengths are padded to a multiple: few shapes for kernels and compilers, and the order of sums in attention
# does not depend on padding (16 floats are a vector register), so bfloat16 rounds equally in any batch.
STEP = 16


class Forward:
    """
    The fast pass with a network's weights.

    Args:
        network: on any device, in any dtype; its weights are moved.
        device, dtype: of the computation.
        compile: run the blocks through `torch.compile`.

    Attributes:
        device: of the computation.
    """

    def __init__(
        self, network: Network, *, device: torch.device, dtype: torch.dtype, compile: bool = False
    ) -> None:
        t5, tower = network.t5.config, network.vision_tower.config
        layers = network.layer % (tower.num_hidden_layers + 1)  # before the hidden state of that number
        weights = Weights(network, device=device, dtype=dtype)
        self.device, self._dtype = device, dtype
        self._tower = VisionTower(weights, "vision_tower", tower, layers)
        self._project = [Linear(weights, f"mm_projector.{number}") for number in (0, 2)]
        self._embeddings = weights.take("t5.shared.weight")
        self._encoder = Encoder(weights, "t5.encoder", t5)
        self._decoder = Decoder(weights, "t5.decoder", t5)
        # In float32 whatever the rest is: bfloat16 would round a logit of 20 to 1/8.
        self._head = weights.take("t5.lm_head.weight", dtype=torch.float32)
        if device.type == "cpu":
            keep_freed_memory()
        part: Any
        for part in (self._tower, self._encoder, self._decoder):
            if compile:
                part.run = torch.compile(part.run)
            elif pays_on(device):
                part.run = Traced(part.run)

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute projected patch features (n, patches, width) of pixels (n, channels, size, size)."""
        seen = self._tower(pixels.to(self.device, self._dtype))
        first, second = self._project
        return second(F.gelu(first(seen)))

    def encode(self, features: torch.Tensor, texts: Sequence[Text]) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Encode each row of *features* between the two halves of its text.

        Returns:
            States (n, length, width) and their padding (n, length): 0 at a token, -inf at padding.
        """
        patches = features.shape[1]
        lengths = [len(before) + patches + len(after) for before, after in texts]
        longest = max(lengths) + -max(lengths) % STEP
        ids = [
            [*before, *[PAD] * patches, *after, *[PAD] * (longest - length)]
            for (before, after), length in zip(texts, lengths, strict=True)
        ]
        states = self._embed(ids)
        firsts = [row * longest + len(before) for row, (before, _) in enumerate(texts)]
        places = self._upload(firsts)[:, None] + torch.arange(patches, device=self.device)
        states.flatten(0, 1).index_copy_(0, places.flatten(), features.flatten(0, 1).to(states.dtype))
        beyond = torch.arange(longest, device=self.device) >= self._upload(lengths)[:, None]
        padding = torch.zeros(beyond.shape, dtype=self._dtype, device=self.device)
        padding.masked_fill_(beyond, -math.inf)
        return self._encoder(states, padding), padding

    def logits(
        self, states: torch.Tensor, padding: torch.Tensor, answers: Sequence[Sequence[Sequence[int]]]
    ) -> torch.Tensor:
        """
        Decode the answers to each question.

        Args:
            states, padding: of n questions, from `encode`.
            answers: for each question its answers, each as token ids.

        Returns:
            Logits (tokens of all answers one after the other, vocabulary), float32.
        """
        most = max(map(len, answers))
        longest = max(len(answer) for group in answers for answer in group)
        ids: list[list[int]] = []
        real: list[int] = []
        for group in answers:
            for answer in [*group, *[()] * (most - len(group))]:
                real += range(len(ids) * longest, len(ids) * longest + len(answer))
                # Decoding begins with padding.
                ids.append([PAD, *answer[:-1], *[PAD] * (longest - max(1, len(answer)))])
        decoded = self._decoder(self._embed(ids), states, padding)
        rows = decoded.flatten(0, 1)[self._upload(real)]
        return F.linear(rows.float(), self._head)

    def _embed(self, ids: Sequence[Sequence[int]]) -> torch.Tensor:
        """Return embeddings (rows, length, width) in float32, as the residual stream is."""
        return F.embedding(self._upload(ids), self._embeddings).float()

    def _upload(self, numbers: Sequence[Any]) -> torch.Tensor:
        """Copy integers to the device without waiting for its queue."""
        return torch.tensor(numbers).to(self.device, non_blocking=True)


def keep_freed_memory() -> None:
    """
    Make glibc reuse the memory that a batch frees.

    glibc maps a block anew if it is larger than the largest block freed so far (up to 32 MiB).  By default
    that is so small that a batch of the demo model spent a third of its time in page faults.
    """
    torch.empty(31 * 2**20, dtype=torch.uint8)
