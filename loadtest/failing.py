"""
`python -m loadtest.failing`: the service with fake models, whose last device fails after a SIGUSR1.

From then on every batch on it raises, as with a broken CUDA context.
"""

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from models.core.contract import Prepared
from models.families.fake.model import FakeModel
from service.process.command import main

DEVICE = "cpu:3"


def serve(fault: Callable[[FakeModel], object]) -> None:
    """Run the service; after a SIGUSR1, *fault* is called with the model before each batch of a fake."""
    begun, whole = threading.Event(), FakeModel.score

    def score(self: FakeModel, batch: Sequence[Prepared]) -> list[Any]:
        if begun.is_set():
            fault(self)
        return whole(self, batch)

    setattr(FakeModel, "score", score)  # noqa: B010 (a method is not assigned to)
    signal.signal(signal.SIGUSR1, lambda *_: begun.set())
    sys.exit(main())


def fail(model: FakeModel) -> None:
    """Raise an error if the model is on the last device."""
    if model.info.device == DEVICE:
        raise RuntimeError("the device is gone")


if __name__ == "__main__":
    serve(fail)
