"""What is said of weights that do not fit a network: in one line, which they are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LISTED = 4  # names of each kind in a message


def mismatch(weights: "Mapping[str, torch.Tensor]", expected: "Mapping[str, torch.Tensor]") -> str:
    """
    What keeps *weights* from being loaded in place of those *expected*; empty where they fit.

    Names, shapes and whether they are floating-point numbers count; the expected values do not, and may
    lie on the device "meta".
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
    """The first few of *names*."""
    return ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
