"""Parts of a network as TorchScript, which runs without Python's global lock."""

import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any

import torch

jit: Any = torch.jit  # it is not typed
compiler: Any = torch._C  # it is not typed


def pays_on(device: torch.device) -> bool:
    """Return True on a CPU: a GPU's host only queues steps."""
    return device.type == "cpu"


class Traced:
    """
    A function of a part of a network and tensors; each part is traced at its first run.

    At every operation torch releases the interpreter's lock and acquires it again, and may wait for a
    decoding thread or the event loop.  A traced part does so once, with the same operations and numbers.  See
    ADR 0020.

    Args:
        run: called with a part, tensors, and constants that select a code path.  The tensors' sizes may vary;
            each combination of constants has a trace of its own.
    """

    def __init__(self, run: Callable[..., torch.Tensor]) -> None:
        self._run = run
        self._traces: dict[Any, Callable[..., torch.Tensor]] = {}
        self._tracing = Lock()

    def __call__(self, part: Any, *given: Any) -> torch.Tensor:
        """Return the result of *run*."""
        tensors = [each for each in given if isinstance(each, torch.Tensor)]
        choices = given[len(tensors) :]
        with self._tracing:
            traced = self._traces.get((part, choices))
            if traced is None:
                traced = self._traces[part, choices] = self._trace(part, tensors, choices)
        with jit.optimized_execution(False):  # an optimised trace is recompiled for new sizes
            return traced(*tensors)

    def forget(self) -> None:
        """Drop all traces, with the weights in them; the next run of a part traces it again."""
        with self._tracing:
            self._traces.clear()

    def _trace(self, part: Any, tensors: list[torch.Tensor], choices: Any) -> Callable[..., torch.Tensor]:
        """
        Trace one part in a compilation unit of its own, which is freed with the function.

        `torch.jit.trace` adds the function, with the weights in it, to a unit of the process that is never
        freed.
        """

        def run(*tensors: torch.Tensor) -> torch.Tensor:
            return self._run(part, *tensors, *choices)

        with warnings.catch_warnings():
            # It warns that the operations may depend on the sizes, which they do not.
            warnings.simplefilter("ignore", jit.TracerWarning)
            graph, _ = compiler._create_graph_by_tracing(run, tensors, unnamed, True, False)
        traced: Callable[..., torch.Tensor] = compiler.CompilationUnit().create_function("run", graph)
        return traced


def unnamed(tensor: torch.Tensor) -> str:
    """Return the name of a value of a trace: none."""
    return ""
