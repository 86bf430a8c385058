"""
How many cores each thread computes with.

Torch computes, and the models that need it bring it along: a gateway whose models are all elsewhere starts
and runs without it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from models.core.contract import Model, Prepared
from service.core.concurrency.imported import imported


def loaded_torch() -> Any:
    """The module, or None where no model needs it, or before it has been imported to its end."""
    return imported("torch")


def all_cores() -> int:
    """OMP_NUM_THREADS, or all that the machine has; 1 without torch."""
    torch = loaded_torch()
    return threads_at_first(torch) if torch else 1


@cache
def threads_at_first(torch: Any) -> int:
    """How many threads *torch* computed with when it was first asked, before any thread was given fewer."""
    return int(torch.get_num_threads())


def compute_on_one_core() -> None:
    """
    Have this thread compute by itself, and every thread that has not computed yet.

    OpenMP's threads wait for work in a busy loop, which makes small steps fast, but only while there are
    no more of them than cores: a second thread with helpers of its own makes a batch take twice as long.
    """
    if torch := loaded_torch():
        threads_at_first(torch)
        torch.set_num_threads(1)


def compute(cores: int, model: Model, batch: Sequence[Prepared]) -> list[Any]:
    """The model's answers, computed with so many cores."""
    if torch := loaded_torch():
        torch.set_num_threads(cores)  # each time: OpenMP's number is this thread's, MKL's is everybody's
    return model.score(batch)


def is_out_of_memory(exc: object) -> bool:
    """Whether a smaller batch may succeed."""
    torch = loaded_torch()
    return isinstance(exc, MemoryError) or bool(torch and isinstance(exc, torch.OutOfMemoryError))
