"""The devices of a machine and their free memory; torch is imported when they are first read."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from models.core.contract import CheckpointAway, CheckpointError

MEMINFO = Path("/proc/meminfo")


class Machine:
    """The machine of this process."""

    def gpu_count(self) -> int:
        """Return the number of GPUs that `CUDA_VISIBLE_DEVICES` shows."""
        import torch

        return torch.cuda.device_count()

    def gpus(self) -> tuple[str, ...]:
        """Return every GPU that CUDA shows to this process.  Raises `CheckpointError` if there is none."""
        if found := tuple(f"cuda:{number}" for number in range(self.gpu_count())):
            return found
        raise CheckpointError('devices = "all": no CUDA device is visible to this process')

    def free_bytes(self, device: str) -> int:
        """
        Return the free bytes of *device*; of the machine's memory for a CPU.

        Raises:
            CheckpointAway: the device has no memory left for CUDA itself.
            CheckpointError: the device does not respond, for example without a driver.
        """
        import torch

        if device.startswith("cuda"):
            try:
                return int(torch.cuda.mem_get_info(device)[0])
            except (RuntimeError, AssertionError) as exc:  # the latter in a build of PyTorch for CPUs
                from models.core.passing import passes  # it imports the library of the hub

                kind = CheckpointAway if passes(exc) else CheckpointError
                raise kind(f"{device}: {str(exc).splitlines()[0]}") from exc
        [kib] = re.findall(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text("ascii"), re.MULTILINE)
        return int(kib) * 1024

    def used_and_total(self, device: str) -> tuple[int, int] | None:
        """Return the bytes in use on a GPU, of all processes, and its size; None without NVML or that GPU."""
        import torch

        if not torch.cuda.is_available():
            return None
        try:
            total = torch.cuda.get_device_properties(device).total_memory
            return torch.cuda.device_memory_used(device), total
        except Exception:  # NVML has classes of its own, if its package is installed
            return None

    def cores(self) -> int:
        """Return the cores that a batch on the CPU may use: OMP_NUM_THREADS, or all."""
        import torch

        return threads_at_first(torch)


@cache
def threads_at_first(torch: Any) -> int:
    """Return the number of threads of *torch* at the first call, before any thread was given fewer."""
    return int(torch.get_num_threads())


THIS_MACHINE = Machine()
