"""Copies of a model on several devices."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from models.core.contract import Model, ModelError, ModelInfo, Prepared
from models.core.machine import THIS_MACHINE, Machine
from models.core.settings import ALL_DEVICES, DeviceSettings, ModelSettings


class Copies:
    """
    A model that is loaded once for each of several devices; any copy prepares calls for all devices.

    Attributes:
        on: the copies, by device.
    """

    def __init__(self, on: Mapping[str, Model]) -> None:
        self.on = dict(on)
        self._first = next(iter(self.on.values()))

    @property
    def info(self) -> ModelInfo:
        """Facts of the first copy; those of the other copies differ in the device only."""
        return self._first.info

    def prepare(self, call: Any) -> Prepared:
        """Prepare *call* for any copy."""
        return self._first.prepare(call)

    def score(self, batch: Any) -> list[Any]:
        """Score on the first device."""
        return self._first.score(batch)

    def example(self) -> Any:
        return self._first.example()


class Unloaded(Copies):
    """
    In place of a model that is loaded when it is first needed; nothing is prepared or scored before.

    Args:
        info: what the settings say about the model.
        devices: of its copies.
    """

    def __init__(self, info: ModelInfo, devices: Sequence[str]) -> None:
        super().__init__(dict.fromkeys(devices, Absent(info)))


class Absent:
    """A copy of an `Unloaded` model."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info

    def prepare(self, call: Any) -> Prepared:
        """Raise `ModelError`."""
        raise ModelError("the model is not loaded")

    def score(self, batch: Any) -> list[Any]:
        """Raise `ModelError`."""
        raise ModelError("the model is not loaded")

    def example(self) -> Any:
        """Raise `ModelError`."""
        raise ModelError("the model is not loaded")


def copies_of(device: str, model: Model) -> dict[str, Model]:
    """Return the copies of *model* by device; a model without copies is on *device*."""
    return dict(model.on) if isinstance(model, Copies) else {device: model}


def devices_of(table: ModelSettings, machine: Machine = THIS_MACHINE) -> tuple[str, ...]:
    """
    Return the devices of *table*; empty if its family has no such setting.

    Raises:
        CheckpointError: the table names all GPUs, and none is visible.
    """
    if isinstance(table, DeviceSettings) and table.devices:
        return machine.gpus() if table.devices == (ALL_DEVICES,) else table.devices
    device = getattr(table, "device", "")
    return (device,) if device else ()


def on_first(table: ModelSettings) -> ModelSettings:
    """Return the settings of the first copy."""
    if not (isinstance(table, DeviceSettings) and table.devices):
        return table
    return table.on(devices_of(table)[0])


def load_each(table: ModelSettings, load: Callable[[ModelSettings], Any]) -> Any:
    """
    Load the model of *table*, on each of its devices if it has several.

    The loader runs once per device, so that each copy is what the loader makes for that device, also in
    families of other packages.  After the first run, the files are in the system's page cache.
    """
    if not (isinstance(table, DeviceSettings) and table.devices):
        return load(table)
    return Copies({device: load(table.on(device)) for device in devices_of(table)})
