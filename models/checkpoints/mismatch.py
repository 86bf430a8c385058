"""Error messages for weights that do not fit a network."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LISTED = 4  # names of each kind in a message


def mismatch(weights: "Mapping[str, torch.Tensor]", expected: "Mapping[str, torch.Tensor]") -> str:
    """
    Describe why *weights* cannot be loaded in place of those *expected*; empty if they fit.

    Names, shapes and floating-point kind are compared.  The expected values may be on the device "meta".
    """
    both = [name for name in expected if name in weights]
    kinds = {
        "missing": [name for name in expected if name not in weights],
        "unexpected": [name for name in weights if name not in expected],
        "of another shape": [
            f"{name} {tuple(weights[name].shape)} instead of {tuple(expected[name].shape)}"
            for name in both
            if weights[name].shape != expected[name].shape
        ],
        "no floating-point numbers": [
            f"{name} {weights[name].dtype}"
            for name in both
            if expected[name].is_floating_point() and not weights[name].is_floating_point()
        ],
    }
    return "; ".join(f"{len(names)} {kind}: {listed(names)}" for kind, names in kinds.items() if names)


def listed(names: Sequence[str]) -> str:
    """Join the first few of *names*."""
    return ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
