"""The memory of a device that is free now."""

import re
from pathlib import Path

import torch

MEMINFO = Path("/proc/meminfo")


def free_bytes(device: str) -> int:
    """Return the free bytes of *device*; of the machine's memory for a CPU."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    [kib] = re.findall(r"^MemAvailable:\s+(\d+) kB", MEMINFO.read_text("ascii"), re.MULTILINE)
    return int(kib) * 1024
