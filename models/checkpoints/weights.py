"""
Reading a checkpoint's tensors from safetensors or pickled files, whole or sharded; and their names.

Of a pickle nothing but plain tensors is unpickled.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from zipfile import is_zipfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file

from models.checkpoints.files import weight_files
from models.core.contract import CheckpointError
from models.core.messages import in_short, listed


def mismatch(weights: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]) -> str:
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


Names = Sequence[tuple[str, str | Callable[[re.Match[str]], str]]]


def translated(name: str, names: Names) -> str:
    """Return the name of a tensor in another layout, by patterns with replacements, in order."""
    for pattern, replacement in names:
        name = re.sub(pattern, replacement, name)
    return name


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def read_weights(directory: Path) -> dict[str, torch.Tensor]:
    """Return all tensors of a checkpoint by name, on the CPU.  Raises `CheckpointError`."""
    tensors: dict[str, torch.Tensor] = {}
    for path in weight_files(directory):
        tensors |= read_file(path, "cpu")
    return tensors


def read_file(path: Path, device: str, *, mapped: bool = False) -> dict[str, torch.Tensor]:
    """
    Return the tensors of one file by name; on the device "meta" only their shapes are read.

    Args:
        mapped: map a pickled file into memory if its format allows that.

    Raises:
        CheckpointError: the file is broken, or holds something else than tensors by name.
    """
    try:
        if path.suffix != ".safetensors":
            mapped = mapped and is_zipfile(path)  # PyTorch before 1.6 wrote no zip file
            held = torch.load(path, map_location=device, weights_only=True, mmap=mapped)
        elif device == "meta":
            with safe_open(path, "pt") as file:
                names = file.keys()
                shapes = {name: file.get_slice(name).get_shape() for name in names}
            held = {name: torch.empty(shape, device="meta") for name, shape in shapes.items()}
        else:
            held = load_file(path, device=device)
    except Exception as exc:  # torch and safetensors raise many kinds for a broken file
        reason = f"{in_short(exc)} (broken or truncated)"
        if type(exc).__name__ == "UnpicklingError":
            # PyTorch's own message explains how to run the code in such a file.
            reason = (
                "not unpickled: it holds something else than plain tensors, and nothing else is unpickled"
            )
        raise CheckpointError(f"{path}: cannot be read as weights: {reason}") from exc
    if not isinstance(held, dict):
        raise CheckpointError(f"{path}: contains no named weights")
    inner = (held.get(name) for name in ("state_dict", "model"))  # training scripts save it so
    tensors: dict[str, torch.Tensor] = next((each for each in inner if isinstance(each, dict)), held)
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise CheckpointError(f"{path}: contains values that are not tensors")
    return tensors


def tensor_sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Return the number of elements of each tensor of some weight files, without reading the tensors."""
    return {name: tensor.numel() for path in paths for name, tensor in read_file(path, "meta").items()}


def num_parameters(paths: Iterable[Path]) -> int:
    """Return the number of elements of all tensors of some weight files."""
    return sum(tensor_sizes(paths).values())
