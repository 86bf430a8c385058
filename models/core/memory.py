"""The memory that a model holds on a device, and weights moved to the host."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, cast, runtime_checkable

import torch

WEIGHTLESS_PACKAGES = ("builtins", "functools", "numpy", "threading", "tokenizers", "torch", "transformers")
"""Packages whose objects hold no weights, except for networks."""

Kept = list[tuple[torch.Tensor, torch.device, torch.Tensor]]


@runtime_checkable
class Forgetful(Protocol):
    """An object in a model that stores what can be computed again, such as a cache of features."""

    def forget(self) -> None:
        """Free what is stored, which may hold weights."""
        ...


class Offloaded:
    """
    The tensors of a model in host memory (pinned if they were on a GPU); the model has empty ones meanwhile.

    Args:
        keep: if False, the weights are dropped, and the model cannot be restored.

    Tensors keep their identity, so references to them are valid after `restore`.  Each `Forgetful` object in
    the model forgets.
    """

    def __init__(self, model: object, *, keep: bool = True) -> None:
        self._kept: Kept = []
        for each in reachable(model):
            if issubclass(type(each), Forgetful):  # `isinstance` takes fifty times as long
                cast(Forgetful, each).forget()
        tensors = tensors_of(model)
        for tensor in tensors if keep else ():
            host = torch.empty_like(tensor.data, device="cpu", pin_memory=tensor.is_cuda)
            self._kept.append((tensor, tensor.device, host.copy_(tensor.data)))
        try:
            empty(tensors)
        except Exception:
            self.restore()
            raise

    def restore(self) -> None:
        """Move all tensors back.  After an error all are empty, and `restore` may be called again."""
        try:
            for tensor, device, host in self._kept:
                tensor.data = host if device.type == "cpu" else host.to(device)
        except Exception:  # torch raises `torch.OutOfMemoryError`, for example
            empty([tensor for tensor, _, _ in self._kept])
            raise
        self._kept.clear()


def empty(tensors: Sequence[torch.Tensor]) -> None:
    """Free the memory of *tensors*."""
    for tensor in tensors:
        tensor.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    if any(tensor.is_cuda for tensor in tensors):
        torch.cuda.empty_cache()  # gives the memory back to the driver


def device_bytes(model: object, device: str) -> int:
    """Return the bytes of *device* that this process holds; on a CPU the bytes of the model's tensors."""
    if torch.device(device).type == "cuda":
        return int(torch.cuda.memory_reserved(device))
    return sum(tensor.nbytes for tensor in tensors_of(model))


def tensors_of(model: object) -> list[torch.Tensor]:
    """Return every tensor that a model holds, once: of its networks, and in attributes of its own objects."""
    return [each for each in reachable(model) if isinstance(each, torch.Tensor)]


def reachable(model: object) -> Iterator[object]:
    """Yield *model* and all objects in it, each once; of a network, the whole and its tensors."""
    waiting, seen = [model], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting.extend(parts_of(each))


def parts_of(value: Any) -> Iterator[Any]:
    """Yield the objects in *value*: a network, a container or an object of a model's package."""
    if isinstance(value, torch.nn.Module):
        yield from value.parameters()
        yield from value.buffers()
        for module in value.modules():
            yield from (part for part in vars(module).values() if not isinstance(part, torch.nn.Module))
    elif isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set):
        yield from value
    elif type(value).__module__.partition(".")[0] not in WEIGHTLESS_PACKAGES:
        yield from vars(value).values() if hasattr(value, "__dict__") else ()
        if is_dataclass(value):  # it may have slots
            yield from (getattr(value, field.name, None) for field in fields(value))
