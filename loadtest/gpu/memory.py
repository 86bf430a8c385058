"""
Memory of CLIP-FlanT5: weights and peaks, the largest batch that fits, recovery, and moves to the host.

What fits is found by doubling a batch until CUDA has no more memory; then an ordinary batch must run again.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

import torch

from loadtest.forward import fast_pass, make_batch, random_network
from loadtest.gpu.bench import NEEDS_CUDA, Bench, drop, release
from loadtest.gpu.limits import HOST_TO_DEVICE
from loadtest.gpu.results import Row, left_out
from loadtest.gpu.steps import Step
from models.core.memory import Offloaded, device_bytes, tensors_of
from models.families.clip_flant5.forward import Forward
from models.families.clip_flant5.network import ClipFlanT5Network

GB = 1e9
TOLERANCE = 1.05  # bytes of weights over those that the profiles state
TRIES = 3  # batches that are too large


class Held:
    """A network's forward pass, and batches for it."""

    def __init__(self, bench: Bench, size: str) -> None:
        self.device = bench.device
        self._network: ClipFlanT5Network = random_network(
            *bench.geometry.flant5[size], bench.device, bench.torch_dtype
        )
        head = self._network.t5.lm_head.weight
        # The profiles count numbers in the dtype, and those of the head in float32.
        numbers = sum(tensor.numel() for tensor in self._network.parameters())
        self.said_bytes = numbers * head.itemsize + head.numel() * (4 - head.itemsize)
        self.forward = Forward(self._network, device=bench.device, dtype=bench.torch_dtype)

    def run(self, rows: int) -> object:
        """Compute a batch of so many pictures, a question each."""
        return fast_pass(self.forward, make_batch(self._network, rows, 1, self.device))


def steps(bench: Bench) -> Iterator[Step]:
    """Yield the steps of each size."""
    for size in bench.geometry.flant5:
        held = cache(partial(Held, bench, size))
        yield Step(f"{size}, weights", partial(weights, size, held))
        if bench.cuda:
            yield Step(f"{size}, peaks", partial(peaks, bench, size, held))
            yield Step(f"{size}, largest batch", partial(limit, bench, size, held))
        else:
            names = [f"{size}, peak", f"{size}, largest batch", f"{size}, recovery"]
            rows = [left_out(name, NEEDS_CUDA) for name in names]
            yield Step(f"{size}, peaks", partial(list, rows))
        yield Step(f"{size}, offload", partial(offload, bench, size, held))
        drop(held)


def weights(size: str, held: Callable[[], Held]) -> Iterator[Row]:
    """Count the bytes of all tensors, and compare them with what a profile says."""
    found, said = sum(tensor.nbytes for tensor in tensors_of(held().forward)), held().said_bytes
    note = f"the profile says {said / GB:.3g} GB"
    yield Row(f"{size}, weights", found / GB, "GB", most=TOLERANCE * said / GB, note=note)


def peaks(bench: Bench, size: str, held: Callable[[], Held]) -> Iterator[Row]:
    """Measure the most that is allocated during a batch, above the weights."""
    model = held()
    for rows in bench.geometry.pairs:
        above = bench.peak_bytes(partial(model.run, rows))
        yield Row(f"{size}, peak of {rows} × 1 above the weights", above / GB, "GB")


def limit(bench: Bench, size: str, held: Callable[[], Held]) -> Iterator[Row]:
    """Find the largest batch, run out of memory several times, and count recoveries."""
    model, least, start = held(), min(bench.geometry.pairs), max(bench.geometry.pairs)
    most, fails = largest(model.run, start, bench.geometry.most_rows)
    yield Row(f"{size}, largest batch", most, "pairs", note="in steps of a factor of two")
    if not fails:
        yield left_out(f"{size}, recovery", f"{most} pairs fit")
        return
    too_many = 2 * most or start
    recovered = sum(recovers(model.run, too_many, least) for _ in range(TRIES))
    what = f"{size}, batches after an out-of-memory error"
    yield Row(what, recovered, f"of {TRIES}", least=TRIES, note=f"{too_many} pairs, then {least}")


def largest(run: Callable[[int], object], start: int, most: int) -> tuple[int, bool]:
    """
    Double the rows of a batch, from *start* to *most*.

    Returns:
        The largest that fits (0 if *start* does not), and True if the next one did not.
    """
    fits, rows = 0, start
    while rows <= most:
        if not runs(run, rows):
            return fits, True
        fits, rows = rows, 2 * rows
    return fits, False


def recovers(run: Callable[[int], object], too_many: int, few: int) -> bool:
    """Return True if *few* rows run after *too_many* did not fit."""
    return not runs(run, too_many) and runs(run, few)


def runs(run: Callable[[int], object], rows: int) -> bool:
    """Return False if a batch of *rows* takes more memory than there is."""
    fits = True
    try:
        run(rows)
    except torch.OutOfMemoryError:
        fits = False
    release()  # the traceback of the exception held tensors until here
    return fits


def offload(bench: Bench, size: str, held: Callable[[], Held]) -> Iterable[Row]:
    """Move the weights to the host and back, as the service does for a model that is not needed."""
    model, kept = held(), list[Offloaded]()
    before = device_bytes(model.forward, str(bench.device))
    off_s = bench.run_s(lambda: kept.append(Offloaded(model.forward)))
    given_back = before - device_bytes(model.forward, str(bench.device))
    back_s = bench.run_s(kept[0].restore)
    yield Row(f"{size}, offload", off_s, "s", note=f"{given_back / GB:.3g} GB given back")
    pace, most = given_back / back_s / GB, bench.results.value("limits", HOST_TO_DEVICE)
    share = pace / most if most else None
    yield Row(f"{size}, load from the host", back_s, "s", share=share, note=f"{pace:.3g} GB/s")
    model.run(1)  # the weights are there again
