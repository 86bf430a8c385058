"""How many cores each thread computes with."""

from collections.abc import Sequence
from typing import Any

import torch

from models.contract import Model, Prepared

CORES = torch.get_num_threads()  # OMP_NUM_THREADS, or all that the machine has


def compute_on_one_core() -> None:
    """
    Have this thread compute by itself, and every thread that has not computed yet.

    OpenMP's threads wait for work in a busy loop, which makes small steps fast, but only while there are
    no more of them than cores: a second thread with helpers of its own makes a batch take twice as long.
    """
    torch.set_num_threads(1)


def compute(cores: int, model: Model, batch: Sequence[Prepared]) -> list[Any]:
    """The model's answers, computed with so many cores."""
    if torch.get_num_threads() != cores:
        torch.set_num_threads(cores)
    return model.score(batch)
