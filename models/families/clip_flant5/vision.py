"""CLIP's vision tower for inference, up to the layer whose output is used."""

import torch
from torch.nn import functional as F
from transformers import CLIPVisionConfig
from transformers.activations import ACT2FN

from models.families.clip_flant5.tensors import Weights


class Norm:
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
        self._activate = ACT2FN[config.hidden_act]
        self._norms = [Norm(weights, f"{name}.layer_norm{number}", config) for number in (1, 2)]
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
        self._norm = Norm(weights, f"{name}.pre_layrnorm", config)
        blocks = [f"{name}.encoder.layers.{number}" for number in range(layers)]
        self._blocks = [Block(weights, block, config) for block in blocks]
        self.run = Block.__call__  # one function for all blocks, so that it is compiled once

    def __call__(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return patch features (n, patches, width), float32, of pixels (n, channels, size, size)."""
        patches = F.conv2d(pixels, self._patch, stride=self._patch.shape[-1]).flatten(2).transpose(1, 2)
        states = torch.cat([self._class.expand(len(pixels), 1, -1), patches.float()], 1)
        states = self._norm(states + self._positions)
        for block in self._blocks:
            states = self.run(block, states)
        return states[:, 1:]
