"""How many GPUs one process drives: the threads that launch their batches share Python's lock (the GIL)."""

from math import ceil

SHARE = 0.5  # of the lock for launching; the rest is for requests, pictures and answers
H100 = {"float32": 33e12, "bfloat16": 400e12}  # operations a second, as docs/operations/sizing.md assumes


def batch_ms(operations: int, dtype: str, max_batch_ms: float) -> float:
    """Return the time of a full batch on an H100, by the formula of docs/operations/sizing.md."""
    return min(max_batch_ms, 1000 * operations / H100[dtype])


def gpus_of_one_process(launch_ms: float, batch_ms: float) -> int:
    """Return how many GPUs are busy with full batches when launching takes half of the lock; 1 at least."""
    return max(1, int(SHARE * batch_ms / launch_ms))


def processes(name: str, gpus: int, launch_ms: float, batch_ms: float) -> str:
    """Return a line for a model on more GPUs than one process drives, else nothing."""
    most = gpus_of_one_process(launch_ms, batch_ms)
    if gpus <= most:
        return ""
    return (
        f"{name}: {ceil(gpus / most)} processes for {gpus} GPUs. Launching a batch takes {launch_ms:g} ms of"
        f" Python's lock, and an H100 about {batch_ms:.0f} ms for a full batch, so one process drives {most}."
        " Raise the limits of its batch, or start more processes (docs/operations/several-gpus.md).\n"
    )
