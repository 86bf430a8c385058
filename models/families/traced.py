"""Parts of a network as TorchScript, which runs them without Python, and so without its lock."""

import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any

import torch

from models.sizing.dry_run import is_dry

jit: Any = torch.jit  # whose names are not typed


def pays_on(device: torch.device) -> bool:
    """Whether parts are to be traced: a GPU's host only queues steps, and a dry run computes no numbers."""
    return device.type == "cpu" and not is_dry()


class Traced:
    """
    A function of a part of a network and tensors; each part is traced when it first runs.

    At every step torch gives up the interpreter's lock and takes it again, and may wait for a thread that
    decodes, or for the event loop.  A traced part does so once.  It takes the same steps, so its numbers are
    the same.  See ADR 0021.

    Args:
        run: called with a part, tensors, and choices between ways to compute.  Sizes of the tensors may
            differ from call to call; each choice has a trace of its own.
    """

    def __init__(self, run: Callable[..., torch.Tensor]) -> None:
        self._run = run
        self._traces: dict[Any, Callable[..., torch.Tensor]] = {}
        self._tracing = Lock()

    def __call__(self, part: Any, *given: Any) -> torch.Tensor:
        """What *run* returns for the same."""
        tensors = [each for each in given if isinstance(each, torch.Tensor)]
        choices = given[len(tensors) :]
        with self._tracing:
            traced = self._traces.get((part, choices))
            if traced is None:
                traced = self._traces[part, choices] = self._trace(part, tensors, choices)
        with jit.optimized_execution(False):  # which would begin anew for sizes it has not seen
            return traced(*tensors)

    def _trace(self, part: Any, tensors: list[torch.Tensor], choices: Any) -> Callable[..., torch.Tensor]:
        def run(*tensors: torch.Tensor) -> torch.Tensor:
            return self._run(part, *tensors, *choices)

        with warnings.catch_warnings():
            # It is not developed any more, and cannot know that the steps are the same for all sizes.
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", jit.TracerWarning)
            traced: Callable[..., torch.Tensor] = jit.trace(run, tuple(tensors), check_trace=False)
        return traced
