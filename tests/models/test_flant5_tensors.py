"""The tensors of a CLIP-FlanT5's checkpoint, as its network of transformers names them."""

import pytest
import torch

from models.families.clip_flant5.layout import activation, read_layout
from models.families.clip_flant5.network import ALIASES, ClipFlanT5Network
from models.families.clip_flant5.tensors import configurations, projector_shapes, t5_shapes, tower_shapes
from tests.support.paths import ROOT

DEMO = ROOT / "models" / "demo" / "weights" / "clip_flant5"
BY_TOKEN = {"t5.shared.weight", "t5.lm_head.weight"}


@pytest.mark.parametrize("more", [{}, {"num_decoder_layers": 1, "num_heads": 3, "d_kv": 20}])
def test_the_names_and_shapes_are_those_of_the_network(more):
    """Those with a row for each token apart."""
    layout = read_layout(DEMO)
    config = layout.config | more
    network = ClipFlanT5Network({**config, "vocab_size": layout.tokenizer.size}, layout.vision)
    t5, tower = network.t5.config, configurations(layout)[1]
    shapes = {f"t5.{name}": shape for name, shape in t5_shapes(t5)}
    shapes |= dict([*tower_shapes(tower), *projector_shapes(t5, tower)])

    expected = {name: tuple(each.shape) for name, each in network.state_dict().items()}
    assert shapes == {name: shape for name, shape in expected.items() if name not in {*ALIASES} | BY_TOKEN}


@pytest.mark.parametrize("name", ["quick_gelu", "gelu", "relu"])
def test_an_activation_function_is_that_of_transformers(name):
    """To the bit."""
    from transformers.activations import ACT2FN

    x = torch.linspace(-8, 8, 1001)
    assert torch.equal(ACT2FN[name](x), activation(name)(x))
