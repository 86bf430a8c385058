"""What is said of weights that do not fit a network: in one line, which they are."""

import re
from collections.abc import Mapping, Sequence

import torch

LISTED = 4  # names of each kind in a message


def misfit(weights: Mapping[str, torch.Tensor], expected: Mapping[str, Sequence[int]]) -> str:
    """What keeps *weights* from being those *expected* by name and shape; empty where they fit."""
    common = [name for name in expected if name in weights]
    kinds = {
        "missing": [name for name in expected if name not in weights],
        "unexpected": [name for name in weights if name not in expected],
        "of another shape": [
            f"{name} {tuple(weights[name].shape)} instead of {tuple(expected[name])}"
            for name in common
            if tuple(weights[name].shape) != tuple(expected[name])
        ],
        "no floating-point numbers": [
            f"{name} {weights[name].dtype}" for name in common if not weights[name].is_floating_point()
        ],
    }
    return "; ".join(f"{len(names)} {kind}: {listed(names)}" for kind, names in kinds.items() if names)


def unfit(missing: Sequence[str], unknown: Sequence[str], wrong: Sequence[str]) -> str:
    """Which weights don't fit: the first few of each kind, and how many there are."""
    kinds = {"missing": missing, "unknown": unknown, "of another shape": wrong}
    lists = (f"{len(names)} {kind} ({listed(names)})" for kind, names in kinds.items() if names)
    return f"weights do not fit: {'; '.join(lists)}"


def shortened(message: str) -> str:
    """torch's account of weights that don't fit a network, shortened."""
    lines = ("".join(re.findall(rf"{kind} key.*", message)) for kind in ("Missing", "Unexpected"))
    missing, unknown = (re.findall(r'"([^"]+)"', line) for line in lines)
    shape = r"torch\.Size\((.*?)\)"
    mismatch = rf"size mismatch for (\S+): .*?{shape} from checkpoint, .*? model is {shape}"
    wrong = [f"{name}: {its} in place of {ours}" for name, its, ours in re.findall(mismatch, message)]
    return unfit(missing, unknown, wrong)


def listed(names: Sequence[str]) -> str:
    """The first few of *names*."""
    return ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")
