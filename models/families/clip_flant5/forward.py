"""
CLIP-FlanT5's forward pass for serving: the numbers of `ClipFlanT5Network` with less work.

Each image and each question about it is encoded once, all its answers are decoded from that, and the head is
computed for real tokens of answers only.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F
from transformers import CLIPVisionConfig

from models.families.clip_flant5.layout import activation
from models.families.clip_flant5.t5 import Decoder, Encoder, Weights
from models.families.clip_flant5.tensors import NetworkTensors
from models.families.clip_flant5.tokens import PAD, SplitText
from models.families.cuda_graphs import Graphed
from models.families.torchscript import Traced, pays_on

if TYPE_CHECKING:  # an import of transformers' networks takes seconds
    from models.families.clip_flant5.network import ClipFlanT5Network


class LayerNorm:
    """Layer norm in float32."""

    def __init__(self, weights: Weights, name: str, config: CLIPVisionConfig) -> None:
        self._scale = weights.take(f"{name}.weight", dtype=torch.float32)
        self._shift = weights.take(f"{name}.bias", dtype=torch.float32)
        self._eps = config.layer_norm_eps

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(states, self._scale.shape, self._scale, self._shift, self._eps)


class Linear:
    """A projection with a bias, in the weights' dtype; several names are projections of one input."""

    def __init__(self, weights: Weights, *names: str) -> None:
        self._weight = weights.take(*(f"{name}.weight" for name in names))
        self._bias = weights.take(*(f"{name}.bias" for name in names))

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x.to(self._weight.dtype), self._weight, self._bias)


class Block:
    """Attention and feed-forward, each with the norm before and the residual after."""

    def __init__(self, weights: Weights, name: str, config: CLIPVisionConfig) -> None:
        self._heads = config.num_attention_heads
        self._activate = activation(config.hidden_act)
        self._norms = [LayerNorm(weights, f"{name}.layer_norm{number}", config) for number in (1, 2)]
        self._qkv = Linear(weights, *(f"{name}.self_attn.{part}_proj" for part in "qkv"))
        self._out = Linear(weights, f"{name}.self_attn.out_proj")
        self._in = Linear(weights, f"{name}.mlp.fc1")
        self._back = Linear(weights, f"{name}.mlp.fc2")

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        rows, length, _ = states.shape
        qkv = self._qkv(self._norms[0](states)).view(rows, length, 3, self._heads, -1)
        seen = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4))
        states = states + self._out(seen.transpose(1, 2).flatten(2))
        return states + self._back(self._activate(self._in(self._norms[1](states))))


class VisionTower:
    """
    Pixels to patch features.

    Args:
        layers: number of layers to run; later ones are not loaded.
    """

    def __init__(self, weights: Weights, name: str, config: CLIPVisionConfig, layers: int) -> None:
        embeddings = f"{name}.embeddings"
        self._patch = weights.take(f"{embeddings}.patch_embedding.weight")
        self._class = weights.take(f"{embeddings}.class_embedding", dtype=torch.float32)
        self._positions = weights.take(f"{embeddings}.position_embedding.weight", dtype=torch.float32)
        self._norm = LayerNorm(weights, f"{name}.pre_layrnorm", config)
        blocks = [f"{name}.encoder.layers.{number}" for number in range(layers)]
        self._blocks = [Block(weights, block, config) for block in blocks]
        self.run = Block.__call__  # one function for all blocks, so that it is compiled once
        self.stack = VisionTower.run_blocks

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return patch features (n, patches, width), float32, of pixels (n, channels, size, size)."""
        return self.stack(self, pixels)

    def run_blocks(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute the features, without a graph."""
        patches = F.conv2d(pixels, self._patch, stride=self._patch.shape[-1]).flatten(2).transpose(1, 2)
        states = torch.cat([self._class.expand(len(pixels), 1, -1), patches.float()], 1)
        states = self._norm(states + self._positions)
        for block in self._blocks:
            states = self.run(block, states)
        return states[:, 1:]


# Lengths are padded to a multiple: few shapes for kernels and compilers, and the order of sums in attention
# does not depend on padding (16 floats are a vector register), so bfloat16 rounds equally in any batch.
LENGTH_STEP = 16
# Questions, and answers to each, of the batches for which `torch.compile` compiles.  A size that has changed
# is variable from then on, but a size of 1, and two equal sizes, are compiled apart.
COMPILED_BATCHES = ((2, 1), (3, 1), (1, 1), (2, 2), (1, 2))


class Forward:
    """
    The fast pass with a network's weights.

    Args:
        network: or its tensors, on any device, in any dtype; they are moved.
        device, dtype: of the computation.
        compile: run the blocks through `torch.compile`.
        graph_rows: on a GPU, run batches of at most so many rows as CUDA graphs.
        trace: run the blocks through TorchScript where that pays.

    Attributes:
        device: of the computation.
    """

    def __init__(
        self,
        network: "ClipFlanT5Network | NetworkTensors",
        *,
        device: torch.device,
        dtype: torch.dtype,
        compile: bool = False,
        graph_rows: int = 0,
        trace: bool = True,
    ) -> None:
        if isinstance(network, NetworkTensors):
            t5, tower = network.t5, network.tower
            weights = Weights(network.take(), device=device, dtype=dtype)
        else:
            t5, tower = network.t5.config, network.vision_tower.config
            weights = Weights(network.state_dict(), device=device, dtype=dtype)
            network.to("meta")
        layers = network.layer % (tower.num_hidden_layers + 1)  # they make the hidden state of that number
        self.device, self._dtype = device, dtype
        self._tower = VisionTower(weights, "vision_tower", tower, layers)
        self._project = [Linear(weights, f"mm_projector.{number}") for number in (0, 2)]
        self._embeddings = weights.take("t5.shared.weight")
        self._encoder = Encoder(weights, "t5.encoder", t5)
        self._decoder = Decoder(weights, "t5.decoder", t5)
        # It is float32 whatever the rest is: bfloat16 would round a logit of 20 to 1/8.
        self._head = weights.take("t5.lm_head.weight", dtype=torch.float32)
        if device.type == "cpu":
            keep_freed_memory()
        part: Any
        for part in (self._tower, self._encoder, self._decoder):
            if compile:
                part.run = torch.compile(part.run)
            elif trace and pays_on(device):
                part.run = Traced(part.run)
            if graph_rows and device.type == "cuda":
                part.stack = Graphed(part.stack, graph_rows)

    @torch.inference_mode()
    def compile(self, side: int) -> None:
        """
        Run the batches for which the blocks are compiled.

        Others on as many threads compile nothing more, unless a question has so many answers that keys are
        computed for them.

        Args:
            side: of the pixels.
        """
        for number, (questions, answers) in enumerate(COMPILED_BATCHES, 1):
            text = [PAD], [PAD] * number * LENGTH_STEP  # lengths differ each time
            answer = [PAD] * (1 + number)
            seen = self.features(torch.zeros(questions, 3, side, side))
            states, padding = self.encode(seen, [text] * questions)
            self.logits(states, padding, [[answer] * answers] * questions)

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Compute projected patch features (n, patches, width) of pixels (n, channels, size, size)."""
        seen = self._tower(pixels.to(self.device, self._dtype))
        first, second = self._project
        return second(F.gelu(first(seen)))

    def encode(self, features: torch.Tensor, texts: Sequence[SplitText]) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Encode each row of *features* between the two halves of its text.

        Returns:
            States (n, length, width) and their padding (n, length): 0 at a token, -inf at padding.
        """
        patches = features.shape[1]
        lengths = [len(before) + patches + len(after) for before, after in texts]
        longest = max(lengths) + -max(lengths) % LENGTH_STEP
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
