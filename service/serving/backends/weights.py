"""The weights of loaded copies on their devices; models without torch have none."""

from collections.abc import Callable, Mapping

from models.core.contract import Model
from service.serving.batcher.cpu_policy import loaded_torch


def bytes_of(copies: Mapping[str, Model]) -> int:
    """Return the memory of *copies* on their devices, in bytes."""
    if loaded_torch() is None:
        return 0
    from models.core.memory import device_bytes

    return sum(device_bytes(copy, device or "cpu") for device, copy in copies.items())


def offload(copy: Model) -> Callable[[], None]:
    """Move the weights of *copy* to the host's memory, and return what brings them back."""
    if loaded_torch() is None:
        return lambda: None
    from models.core.memory import Offloaded

    return Offloaded(copy).restore


def drop(copy: Model) -> None:
    """Free the weights of *copy*, which is of no more use."""
    if loaded_torch() is not None:
        from models.core.memory import Offloaded

        Offloaded(copy, keep=False)
