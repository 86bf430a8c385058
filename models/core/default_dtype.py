"""
torch's default dtype as the loading thread's own.

torch has one for the process.  transformers sets it to a network's dtype while it builds the network, and a
batch that another thread runs then would compute some of its numbers in that dtype.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

# These return the default dtype, unless they are given one.
FACTORIES_OF_FLOATS = frozenset(
    {
        *(torch.empty, torch.empty_permuted, torch.empty_strided, torch.eye, torch.linspace, torch.logspace),
        *(torch.ones, torch.rand, torch.randn, torch.range, torch.scalar_tensor, torch.zeros),
        *(torch.bartlett_window, torch.blackman_window, torch.hamming_window, torch.hann_window),
        *(torch.kaiser_window, torch.fft.fftfreq, torch.fft.rfftfreq),
    }
)
# These return it for Python's floats.
FACTORIES_OF_VALUES = frozenset({torch.arange, torch.as_tensor, torch.asarray, torch.full, torch.tensor})

set_for_all, get_for_all = torch.set_default_dtype, torch.get_default_dtype


class OwnDefault(TorchFunctionMode):
    """
    The default dtype of the thread that enters it.

    It is not that of the results of `torch.Tensor(3)` and of quotients of integers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.dtype = get_for_all()

    def __torch_function__(
        self,
        function: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call *function*; new tensors without a dtype get this one."""
        given = dict(kwargs or {})
        if self.dtype == get_for_all() or given.get("dtype") is not None:
            return function(*args, **given)
        if function in FACTORIES_OF_FLOATS:
            return function(*args, **given | {"dtype": self.dtype})
        result = function(*args, **given)
        if function in FACTORIES_OF_VALUES and result.dtype == get_for_all():
            typed = any(hasattr(each, "dtype") for each in (*args, *given.values()))
            return result if typed else result.to(self.dtype)
        return result


class OfThread(threading.local):
    """Attributes: own: the default of this thread; None if it has that of the process."""

    own: OwnDefault | None = None


_of_thread = OfThread()
_changing = threading.Lock()
_threads = 0  # with a default of their own


@contextmanager
def own_default_dtype() -> Iterator[None]:
    """
    Give this thread a default dtype of its own, by default that of the process.

    `torch.set_default_dtype` and `torch.get_default_dtype` are about it; on other threads they do as ever.
    """
    with OwnDefault() as own:
        _of_thread.own = own
        change(1)
        try:
            yield
        finally:
            change(-1)
            _of_thread.own = None


def change(threads: int) -> None:
    """Count threads with a default of their own; torch's functions are replaced while there are any."""
    global _threads
    with _changing:
        _threads += threads
        torch.set_default_dtype = set_default_dtype if _threads else set_for_all
        torch.get_default_dtype = get_default_dtype if _threads else get_for_all


def set_default_dtype(dtype: torch.dtype) -> None:
    """Set the default dtype of this thread, or of all without one."""
    if _of_thread.own is None:
        set_for_all(dtype)
    else:
        _of_thread.own.dtype = dtype


def get_default_dtype() -> torch.dtype:
    """Return the default dtype of this thread."""
    return get_for_all() if _of_thread.own is None else _of_thread.own.dtype


def in_own_dtype(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter) -> Any:
    """
    Return a parameter made by `torch.Tensor(3)` in the default dtype of this thread; None for others.

    Such a one has the default dtype of the process, and is on the CPU when all others are on no device.
    """
    own = _of_thread.own
    if own is None or parameter.dtype == own.dtype or parameter.dtype != get_for_all():
        return None
    if parameter.is_meta or torch.get_default_device().type != "meta":
        return None
    return torch.nn.Parameter(parameter.detach().to(own.dtype), parameter.requires_grad)


register_module_parameter_registration_hook(in_own_dtype)
