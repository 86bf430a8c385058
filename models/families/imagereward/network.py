"""ImageReward's network: BLIP's two towers of transformers, and a head."""

from pathlib import Path

import torch
from torch import nn
from transformers import BlipTextConfig, BlipTextModel, BlipVisionConfig, BlipVisionModel

from models.checkpoints.mismatch import mismatch
from models.checkpoints.weights import read_file
from models.core.contract import CheckpointError
from models.families.imagereward.layout import (
    UNUSED,
    name_in_file,
    text_config,
    vision_config,
    weights_files,
)
from models.families.linear_head import linear_head, width_of

# Of the rewards of the training data; from the released code.
MEAN, DEVIATION = 0.16717362830052426, 1.0333394966054072
MLP = "mlp."


class Network(nn.Module):
    """Pixels and token ids to rewards."""

    def __init__(self, vision: BlipVisionConfig, text: BlipTextConfig, head: nn.Module) -> None:
        super().__init__()
        self.vision = BlipVisionModel(vision)
        self.text = BlipTextModel(text, add_pooling_layer=False)
        self.mlp = head

    def forward(
        self, pixels: torch.Tensor, places: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """
        Compute rewards.

        Args:
            pixels: (P, 3, side, side) of distinct pictures.
            places: (N) index of the picture of each text.
            ids, mask: (N, T) tokens, and 1 at each token, 0 at padding.

        Returns:
            (N) rewards, float32.
        """
        seen = self.vision(pixel_values=pixels).last_hidden_state
        read = self.text(input_ids=ids, attention_mask=mask, encoder_hidden_states=seen[places])
        rewards: torch.Tensor = self.mlp(read.last_hidden_state[:, 0].float())[:, 0]
        return (rewards - MEAN) / DEVIATION


def load_network(directory: Path, dtype: torch.dtype) -> Network:
    """
    Load the network of *directory* with every weight; the head stays in float32.

    Raises:
        CheckpointError: a file is missing or broken, or the weights don't fit.
    """
    [path] = weights_files(directory)
    held = read_file(path, "cpu", mapped=True)
    tensors = {name: tensor for name, tensor in held.items() if not UNUSED.fullmatch(name)}
    head = {name.removeprefix(MLP): tensor for name, tensor in tensors.items() if name.startswith(MLP)}
    vision = vision_config(path, tensors)
    text = text_config(directory, vision.hidden_size)
    mlp = linear_head(head, path)
    if width_of(mlp) != text.hidden_size:
        raise CheckpointError(
            f"{path}: the head takes {width_of(mlp)} numbers, and the text tower has {text.hidden_size}"
        )
    network = Network(vision, text, mlp)
    names = {name: name_in_file(name) for name in network.state_dict()}
    if wrong := mismatch(tensors, {names[name]: tensor for name, tensor in network.state_dict().items()}):
        raise CheckpointError(f"{path}: the weights don't fit: {wrong}")
    network.load_state_dict({name: tensors[place] for name, place in names.items()})
    network.vision.to(dtype)
    network.text.to(dtype)
    return network
