"""
The tensors of a checkpoint by name, each name and shape checked.

Serving needs no network of transformers, whose import takes half of the time that a small model needs.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import CLIPVisionConfig, T5Config

from models.checkpoints.files import CONFIG
from models.checkpoints.weights import mismatch, read_weights
from models.core.contract import CheckpointError
from models.families.clip_flant5.layout import EMBEDDING, Layout, renamed

HEAD = "lm_head.weight"
TENSORS_BY_TOKEN = (EMBEDDING, HEAD)  # these have a row for each token

Shapes = Iterator[tuple[str, tuple[int, ...]]]


class NetworkTensors:
    """
    The tensors of a network, until `Weights` takes them, and what the forward pass is configured by.

    Attributes:
        t5, tower: configurations.
        layer: of the tower, whose hidden state has the features.
    """

    def __init__(self, directory: Path, layout: Layout) -> None:
        """Read the tensors.  Raises as `read_tensors`."""
        self._tensors = read_tensors(directory, layout)
        self.t5, self.tower = configurations(layout)
        self.layer = layout.config.get("mm_vision_select_layer", -2)

    def take(self) -> dict[str, torch.Tensor]:
        """Return the tensors, and keep none."""
        taken, self._tensors = self._tensors, {}
        return taken


def configurations(layout: Layout) -> tuple[T5Config, CLIPVisionConfig]:
    """
    Return the configurations of both parts.

    tie_word_embeddings is false for every FlanT5: lm_head has its own weights, and the decoder's output is
    not scaled by d_model ** -0.5.
    """
    own = {"model_type": "t5", "tie_word_embeddings": False, "vocab_size": layout.tokenizer.size}
    return T5Config(**{**layout.config, **own}), CLIPVisionConfig(**layout.vision)


def read_tensors(directory: Path, layout: Layout) -> dict[str, torch.Tensor]:
    """
    Read the weights of a checkpoint by the names that they have in `ClipFlanT5Network`.

    The reference cuts the embeddings to the tokenizer's length (32128 to 32100 rows), so its softmax runs
    over that many; so does this one.

    Raises:
        CheckpointError: the weights don't fit the configurations.
    """
    t5, tower = configurations(layout)
    shapes = dict([*t5_shapes(t5), *tower_shapes(tower), *projector_shapes(t5, tower)])
    vocabulary = layout.tokenizer.size
    for name in TENSORS_BY_TOKEN:
        shapes[name] = (layout.config["vocab_size"], t5.d_model)
    weights = renamed(read_weights(directory))
    expected = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
    if wrong := mismatch(weights, expected):
        raise CheckpointError(f"{directory}: the weights don't fit {CONFIG}: {wrong}")
    for name in TENSORS_BY_TOKEN:
        weights[name] = weights[name][:vocabulary]
    apart = ("vision_tower.", "mm_projector.")
    return {name if name.startswith(apart) else f"t5.{name}": tensor for name, tensor in weights.items()}


def t5_shapes(config: T5Config) -> Shapes:
    """Yield the names and shapes of T5's tensors, but for those with a row for each token."""
    width, inner = config.d_model, config.num_heads * config.d_kv
    stacks = {
        "encoder": (config.num_layers, ["SelfAttention"]),
        "decoder": (config.num_decoder_layers, ["SelfAttention", "EncDecAttention"]),
    }
    for stack, (blocks, attentions) in stacks.items():
        for block in range(blocks):
            for number, attention in enumerate(attentions):
                layer = f"{stack}.block.{block}.layer.{number}"
                yield from ((f"{layer}.{attention}.{part}.weight", (inner, width)) for part in "qkv")
                yield f"{layer}.{attention}.o.weight", (width, inner)
                yield f"{layer}.layer_norm.weight", (width,)
            layer = f"{stack}.block.{block}.layer.{len(attentions)}"
            yield from ((f"{layer}.DenseReluDense.wi_{n}.weight", (config.d_ff, width)) for n in (0, 1))
            yield f"{layer}.DenseReluDense.wo.weight", (width, config.d_ff)
            yield f"{layer}.layer_norm.weight", (width,)
        bias = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        yield bias, (config.relative_attention_num_buckets, config.num_heads)
        yield f"{stack}.final_layer_norm.weight", (width,)


def tower_shapes(config: CLIPVisionConfig) -> Shapes:
    """Yield the names and shapes of the vision tower's tensors."""
    width, inner, patch = config.hidden_size, config.intermediate_size, config.patch_size
    embeddings = "vision_tower.embeddings"
    yield f"{embeddings}.class_embedding", (width,)
    yield f"{embeddings}.patch_embedding.weight", (width, config.num_channels, patch, patch)
    yield f"{embeddings}.position_embedding.weight", ((config.image_size // patch) ** 2 + 1, width)
    for number in range(config.num_hidden_layers):
        layer = f"vision_tower.encoder.layers.{number}"
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            yield from linear(f"{layer}.self_attn.{part}", width, width)
        yield from linear(f"{layer}.mlp.fc1", inner, width)
        yield from linear(f"{layer}.mlp.fc2", width, inner)
        for norm in ("layer_norm1", "layer_norm2"):
            yield from linear(f"{layer}.{norm}", width)
    for norm in ("pre_layrnorm", "post_layernorm"):
        yield from linear(f"vision_tower.{norm}", width)


def projector_shapes(t5: T5Config, tower: CLIPVisionConfig) -> Shapes:
    """Yield the names and shapes of the projection of features."""
    yield from linear("mm_projector.0", t5.d_model, tower.hidden_size)
    yield from linear("mm_projector.2", t5.d_model, t5.d_model)


def linear(name: str, *shape: int) -> Shapes:
    """Yield the shapes of a weight and its bias."""
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]
