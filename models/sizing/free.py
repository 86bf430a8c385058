"""The memory of a device that is free, or in use, now."""

import re
from pathlib import Path

import torch

from models.core.contract import CheckpointAway, CheckpointError
from models.core.passing import passes

MEMINFO = Path("/proc/meminfo")


def free_bytes(device: str) -> int:
    """
    Return the free bytes of *device*; of the machine's memory for a CPU.

    Raises:
        CheckpointAway: it has no memory for CUDA itself.
        CheckpointError: it does not answer, for example without a driver.
    """
    if device.startswith("cuda"):
        try:
            return int(torch.cuda.mem_get_info(device)[0])
        except (RuntimeError, AssertionError) as exc:  # the latter in a build of PyTorch for CPUs
            kind = CheckpointAway if passes(exc) else CheckpointError
            raise kind(f"{device}: {str(exc).splitlines()[0]}") from exc
    [kib] = re.findall(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text("ascii"), re.MULTILINE)
    return int(kib) * 1024


def used_and_total(device: str) -> tuple[int, int] | None:
    """Return the bytes in use on a GPU, of all processes, and its size; None without NVML, or such a GPU."""
    if not torch.cuda.is_available():
        return None
    try:
        return torch.cuda.device_memory_used(device), torch.cuda.get_device_properties(device).total_memory
    except Exception:  # NVML has classes of its own, if its package is installed
        return None
