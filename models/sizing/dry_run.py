"""
Dry runs: a model is built and run on a device that need not exist.

PyTorch's FakeTensorMode propagates shapes, dtypes and devices through every operation and computes no number,
so a model of any size runs in seconds and without its weights.  A tensor on a wrong device raises, as on a
GPU.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from models.core.quiet import quiet
from models.sizing.meter import Meter

_DRY: ContextVar[bool] = ContextVar("dry", default=False)

# Functions that read numbers from a tensor, and their replacements.
NUMBERS: dict[Any, Any] = {
    torch.Tensor.item: 0,
    torch.Tensor.__int__: 0,
    torch.Tensor.__float__: 0.0,
    torch.Tensor.__bool__: False,
    torch.equal: True,
}


@contextmanager
def dry_run(device: str = "cuda") -> Iterator[Meter]:
    """
    Make tensors without content inside the context; tensors from outside can be read.

    Yields:
        The meter of the memory on *device*.
    """
    token = _DRY.set(True)
    try:
        # Warnings in the log that the weights of a network are random are suppressed.
        with quiet(), Fakes(allow_non_fake_inputs=True), Numbers(), Meter(device) as meter:
            yield meter
    finally:
        _DRY.reset(token)


def is_dry() -> bool:
    """Return True in a dry run, in which weights are not read."""
    return _DRY.get()


class Fakes(FakeTensorMode):  # type: ignore[no-untyped-call]
    """PyTorch's mode without its memo, whose weak references prevent modules from being moved."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.fake_tensor_converter.set_tensor_memo = lambda *_: None  # type: ignore[method-assign]

    def may_turn_const(self, t: torch.Tensor) -> bool:
        """Return False, or operations on a single number would run on the device."""
        return False


class Numbers(TorchFunctionMode):
    """Replaces numbers that are read from a tensor without content by 0."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the replacement, or the result of *func*."""
        kwargs = kwargs or {}
        if func in NUMBERS:
            return NUMBERS[func]
        if func is torch.Tensor.numpy:
            return np.zeros(args[0].shape, str(args[0].dtype).removeprefix("torch."))
        return func(*args, **kwargs)
