"""The Prometheus series that are read from a model of a pool."""

from collections.abc import Callable, Iterable
from functools import partial

from models.core.contract import Model
from service.core.lanes import LANES
from service.observability.instruments import Instruments
from service.serving.batcher.device import Device
from service.serving.batcher.scheduler import HostedModel


def show(
    resident: HostedModel[Model],
    devices: Iterable[Device],
    instruments: Instruments,
    stalled_for: Callable[[], float],
    clock: Callable[[], float],
) -> None:
    """
    Create the series of *resident* and of its *devices*.

    Args:
        stalled_for: of the pool.
    """
    instruments.stalled.labels(resident.name).set_function(stalled_for)
    for lane in LANES:
        instruments.queue_depth.labels(resident.name, lane).set_function(partial(resident.queue.depth, lane))
    for device in devices:
        instruments.add_device(resident.name, device.name, partial(stalled_on, device, clock))


def stalled_on(device: Device, clock: Callable[[], float]) -> float:
    """Return `Device.stalled_for` of now."""
    return device.stalled_for(clock())
