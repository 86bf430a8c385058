"""
Dry runs: a model is made and run on a device that need not be there.

PyTorch's FakeTensorMode follows shapes, dtypes and devices through every operation and computes no number,
so a model of any size runs in seconds and without its weights.  A tensor on another device than the rest
raises, as it would on a GPU.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from models.sizing.meter import Meter

_DRY: ContextVar[bool] = ContextVar("dry", default=False)

# What takes numbers out of a tensor, and what there is instead.
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
    Within it tensors have no content.  Tensors from outside may be used, and are not changed.

    Yields:
        The meter of the memory that a *device* would need.
    """
    token, logged = _DRY.set(True), logging.root.manager.disable
    logging.disable(logging.WARNING)  # that weights are random, which nobody will see
    try:
        with Fakes(allow_non_fake_inputs=True), Numbers(), Meter(device) as meter:
            yield meter
    finally:
        logging.disable(logged)
        _DRY.reset(token)


def is_dry() -> bool:
    """Whether this is a dry run, so that weights are not to be read."""
    return _DRY.get()


class Fakes(FakeTensorMode):  # type: ignore[no-untyped-call]
    """PyTorch's mode without its memo, whose weak references keep modules from being moved."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.fake_tensor_converter.set_tensor_memo = lambda *_: None  # type: ignore[method-assign]

    def may_turn_const(self, t: torch.Tensor) -> bool:
        """Never: what is done to a single number would be done in truth, on a device that is not there."""
        return False


class Numbers(TorchFunctionMode):
    """Numbers that are read from a tensor without content are 0."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The number, or what *func* gives."""
        kwargs = kwargs or {}
        if func in NUMBERS:
            return NUMBERS[func]
        if func is torch.Tensor.numpy:
            return np.zeros(args[0].shape, str(args[0].dtype).removeprefix("torch."))
        return func(*args, **kwargs)
