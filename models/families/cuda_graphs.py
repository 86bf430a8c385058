"""Parts of a network as CUDA graphs, whose kernels a GPU runs without waiting for the host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

cuda: Any = torch.cuda  # partly not typed

MAX_SHAPES = 64  # graphs of a part at a time; each holds its inputs and its result


@dataclass(frozen=True, slots=True)
class Captured:
    """A graph, with the tensors that it reads and writes."""

    inputs: Sequence[torch.Tensor]
    graph: Any
    result: torch.Tensor


class Graphed:
    """
    A function of a part of a network and tensors, captured at its first run with tensors of some shapes.

    A small batch takes a GPU less time than launching its kernels takes the host; a replay is one launch.
    Not thread-safe.  A result is valid until the next run with tensors of equal shapes.

    Args:
        run: returns one tensor, with the same operations for all tensors of equal shapes.
        rows: run without a graph if the first tensor has more rows.
    """

    def __init__(self, run: Callable[..., torch.Tensor], rows: int) -> None:
        self._run, self._rows = run, rows
        self._graphs: dict[tuple[torch.Size, ...], Captured] = {}

    def __call__(self, part: Any, *given: torch.Tensor) -> torch.Tensor:
        """Return the result of *run*."""
        if len(given[0]) > self._rows:
            return self._run(part, *given)
        shapes = tuple(each.shape for each in given)
        if shapes not in self._graphs:
            if len(self._graphs) == MAX_SHAPES:
                del self._graphs[next(iter(self._graphs))]
            self._graphs[shapes] = self._capture(part, given)
        captured = self._graphs[shapes]
        for held, each in zip(captured.inputs, given, strict=True):
            held.copy_(each)
        captured.graph.replay()
        return captured.result

    def forget(self) -> None:
        """Drop all graphs: they hold the addresses of the weights."""
        self._graphs.clear()

    def _capture(self, part: Any, given: Sequence[torch.Tensor]) -> Captured:
        inputs, kernels, warming = [each.clone() for each in given], cuda.current_stream(), cuda.Stream()
        warming.wait_stream(kernels)
        with cuda.stream(warming):
            self._run(part, *inputs)  # libraries and compilers prepare themselves, which no graph may contain
        kernels.wait_stream(warming)
        # All results are kept, so the graphs of a part can share the memory of what lies between.
        pool = next((each.graph.pool() for each in self._graphs.values()), None)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):  # others may allocate meanwhile
            result = self._run(part, *inputs)
        return Captured(inputs, graph, result)
