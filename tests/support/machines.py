"""A machine with devices of a test's choice."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from models.core.contract import CheckpointError
from models.core.machine import Machine

LARGE = 10**12  # bytes that hold every model


@dataclass
class FakeMachine(Machine):
    """
    A machine that reads nothing.

    Attributes:
        gpu: the number of its GPUs.
        free: free bytes by device; others do not answer.
        used: bytes in use and in all on each GPU, if NVML answers.
        cpus: its cores.
    """

    gpu: int = 0
    free: Mapping[str, int] = field(default_factory=lambda: {"cpu": LARGE})
    used: tuple[int, int] | None = None
    cpus: int = 2

    def gpu_count(self) -> int:
        return self.gpu

    def cores(self) -> int:
        return self.cpus

    def free_bytes(self, device: str) -> int:
        if device not in self.free:
            raise CheckpointError(f"{device}: does not answer")
        return self.free[device]

    def used_and_total(self, device: str) -> tuple[int, int] | None:
        return self.used
