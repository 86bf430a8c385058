"""The parts of an open_clip network that run as TorchScript on a CPU, see ADR 0021."""

from functools import partial
from typing import Any
from weakref import ReferenceType, ref

import torch
from open_clip.modified_resnet import ModifiedResNet
from open_clip.transformer import Transformer

from models.families.traced import Traced


def trace(network: Any) -> Traced:
    """
    Trace all transformers of *network*, and a ResNet, at their first run; return the holder of the traces.

    A part refers to itself weakly, so that a dropped network is freed at once.

    Their operations depend neither on the content nor on the number of rows.  That is not certain for towers
    of other libraries, so those are not traced.
    """
    run = Traced(untraced)
    network.requires_grad_(False)  # or a trace could not hold the weights
    for part in network.modules():
        if type(part) is ModifiedResNet:
            part.forward = partial(run, ref(part))
        elif type(part) is Transformer:
            part.forward = partial(masked, run, ref(part))
    return run


def untraced(held: "ReferenceType[Any]", *given: Any) -> torch.Tensor:
    """Run open_clip's own code of a part."""
    part: Any = held()
    passed: torch.Tensor = type(part).forward(part, *given)
    return passed


def masked(run: Traced, part: Any, x: torch.Tensor, attn_mask: torch.Tensor | None = None) -> torch.Tensor:
    """Run a transformer, with open_clip's names of the arguments."""
    return run(part, x, attn_mask)
