"""What all parts share: the device with its dtype, the geometry, earlier results, and timing."""

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from loadtest.gpu.geometry import Geometry
from loadtest.gpu.results import Results
from loadtest.work import peak, seconds
from models.checkpoints.weights import DTYPES

NEEDS_CUDA = "needs CUDA"
WITHIN_S = 3.0  # a timing's rounds end then; the first round is always complete


@dataclass(frozen=True)
class Bench:
    """
    A run of the command.

    Attributes:
        device: where the networks are.
        dtype: of their weights, as `models.NAME.dtype` has it.
        folder: for checkpoints and logs.
        vllm: the Python that has vLLM.
    """

    geometry: Geometry
    device: torch.device
    dtype: str
    folder: Path
    results: Results
    vllm: Path = Path(sys.executable)

    @property
    def cuda(self) -> bool:
        """True on a GPU."""
        return self.device.type == "cuda"

    @property
    def torch_dtype(self) -> torch.dtype:
        return DTYPES[self.dtype]

    @cached_property
    def peak(self) -> float:
        """Operations a second of a matrix product in the networks' dtype: of the part `limits`, or now."""
        measured = self.results.value("limits", product(self.dtype))
        return 1e12 * measured if measured else peak(self.device, self.torch_dtype, self.geometry.matrix)

    def run_s(self, do: Callable[[], object]) -> float:
        """Return the seconds of *do*, the device's queue included."""
        return seconds(do, self.device)

    def pace_s(self, do: Callable[[], object]) -> float:
        """Return the median seconds of *do*; the caller has warmed up."""
        times: list[float] = []
        while len(times) < self.geometry.rounds and sum(times) < WITHIN_S:
            times.append(self.run_s(do))
        return median(times)

    def operations(self, do: Callable[[], object]) -> int:
        """Run *do* once; return its operations of matrix products, convolutions and attention."""
        with FlopCounterMode(display=False) as counter:
            do()
        return int(counter.get_total_flops())

    def peak_bytes(self, do: Callable[[], object]) -> int:
        """Run *do* once; return the most that a GPU allocates meanwhile, above what it held before."""
        before = torch.cuda.memory_allocated(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        do()
        return torch.cuda.max_memory_allocated(self.device) - before


def product(kind: str) -> str:
    """Return the name of the row with the speed of a matrix product."""
    return f"matrix product, {kind}"


def drop(made: Any) -> None:
    """Clear a cache that holds a network, and free its memory before the next network is made."""
    made.cache_clear()
    release()


def release() -> None:
    """Free the memory of what is no longer used, also on the GPU."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
