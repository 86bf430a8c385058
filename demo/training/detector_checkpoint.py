"""The demo detector: a very small Mask2Former on a residual network, in transformers' layout."""

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import Mask2FormerConfig, ResNetConfig

from demo.training.world import SHAPES
from models.families.detector.mask2former import Mask2FormerNetwork

SIZE = 128  # pictures are squashed to a square of so many pixels
STRIDE = 4  # pixels of that square per pixel of a mask
GRID = 5  # queries begin as a grid of so many by so many places
WIDTH = 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

PREPROCESSOR = {
    "image_processor_type": "Mask2FormerImageProcessor",
    "do_resize": True,
    "size": {"height": SIZE, "width": SIZE},
    "resample": 2,  # bilinear
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": list(MEAN),
    "image_std": list(STD),
}


def configuration() -> Mask2FormerConfig:
    """Return the smallest configuration that learns the demo world; the classes are its shapes."""
    backbone = ResNetConfig(
        embedding_size=32,
        hidden_sizes=[32, 64, 96, 96],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )
    return Mask2FormerConfig(
        backbone_config=backbone,
        feature_size=WIDTH,
        mask_feature_size=WIDTH,
        hidden_dim=WIDTH,
        encoder_feedforward_dim=2 * WIDTH,
        encoder_layers=2,
        decoder_layers=4,
        num_attention_heads=4,
        dim_feedforward=4 * WIDTH,
        num_queries=GRID * GRID,
        id2label=dict(enumerate(SHAPES)),
        label2id={shape: number for number, shape in enumerate(SHAPES)},
        architectures=["Mask2FormerForUniversalSegmentation"],
    )


def anchors() -> torch.Tensor:
    """Return the initial place of each query: x and y as shares of the picture, (queries, 2)."""
    steps = (torch.arange(GRID) + 0.5) / GRID
    y, x = torch.meshgrid(steps, steps, indexing="ij")
    return torch.stack([x.flatten(), y.flatten()], 1)


def waves(places: torch.Tensor, features: int) -> torch.Tensor:
    """Return Mask2Former's position embedding of keys at *places* (n, 2), of 2 * *features*."""
    rates = 10000.0 ** -(2 * torch.div(torch.arange(features), 2, rounding_mode="floor") / features)
    x, y = (2 * math.pi * places[:, axis, None] * rates for axis in (0, 1))
    parts = [torch.stack([each[:, 0::2].sin(), each[:, 1::2].cos()], 2).flatten(1) for each in (y, x)]
    return torch.cat(parts, 1)


def new_network() -> Mask2FormerNetwork:
    """
    Return an untrained network that is initialised with places.

    Queries attend to the places of a grid, and the pixel decoder's attention depends on the place.  With
    transformers' initial weights both must be learnt first, and its batch norms pass almost nothing on.
    """
    network = Mask2FormerNetwork(configuration())
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.ones_(module.weight)
        transformer = network.model.transformer_module
        transformer.queries_embedder.weight.copy_(waves(anchors(), WIDTH // 2))
        for layer in transformer.decoder.layers:
            query, key, _ = layer.cross_attn.in_proj_weight.chunk(3)
            query.copy_(key)
        decoder = network.model.pixel_level_module.decoder
        for projection in decoder.input_projections:
            nn.init.normal_(projection[1].bias)
        for layer in decoder.encoder.layers:
            nn.init.normal_(layer.self_attn.attention_weights.weight, std=0.3)
    return network


def write(network: Mask2FormerNetwork, directory: Path) -> None:
    """Save in transformers' layout, weights as float16 in safetensors."""
    directory.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, Any] = {
        name: (tensor.half() if tensor.is_floating_point() else tensor).contiguous()
        for name, tensor in network.state_dict().items()
    }
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    configuration().save_pretrained(directory)
    (directory / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR, indent=2) + "\n")
