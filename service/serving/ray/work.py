"""The batches of a replica, counted there and in the gateways that it answers."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from service.observability.instruments import Instruments, gpu_memory


@dataclass(frozen=True, slots=True)
class Work:
    """
    The batches of a replica since its last answer to any gateway, so that all gateways count each one once.

    Attributes:
        answered: calls and seconds of each batch whose calls were answered; halves of one count separately.
        ran: calls and seconds of each batch on the device.
        out_of_memory: number of batches.
        memory: bytes of its GPUs now, by kind.
    """

    answered: list[tuple[int, float]] = field(default_factory=list)
    ran: list[tuple[int, float]] = field(default_factory=list)
    out_of_memory: int = 0
    memory: Mapping[str, int] = field(default_factory=dict)

    def count(self, instruments: Instruments, model: str) -> None:
        """Count the batches of *model*."""
        for size, seconds in self.answered:
            instruments.count_batch(model, size, seconds)

    def count_on(self, instruments: Instruments, model: str, device: str) -> None:
        """Count them by *device*, as the series of a device of this process."""
        for size, seconds in self.ran:
            instruments.count_device(model, device, size, seconds)
        if self.out_of_memory:
            instruments.count_out_of_memory(model, device, self.out_of_memory)
        if self.memory:
            instruments.gpu_memory.elsewhere[device] = self.memory


class Recorder(Instruments):
    """The instruments of a replica, which has no exporter: batches are kept until they are sent."""

    def __init__(self, model: str) -> None:
        super().__init__([model])
        self._answered: list[tuple[int, float]] = []
        self._ran: list[tuple[int, float]] = []
        self._out_of_memory = 0

    def count_batch(self, model: str, size: int, seconds: float) -> None:
        """Keep the batch."""
        self._answered.append((size, seconds))

    def count_device(self, model: str, device: str, size: int, seconds: float) -> None:
        """Keep the batch."""
        self._ran.append((size, seconds))

    def count_out_of_memory(self, model: str, device: str, batches: int = 1) -> None:
        """Add *batches*."""
        self._out_of_memory += batches

    def take(self) -> Work:
        """Return the work since the last time."""
        memory: dict[str, int] = defaultdict(int)
        for _, kind, size in gpu_memory():
            memory[kind] += size
        work = Work(self._answered, self._ran, self._out_of_memory, dict(memory))
        self._answered, self._ran, self._out_of_memory = [], [], 0
        return work
