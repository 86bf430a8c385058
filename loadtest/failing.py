"""
`python -m loadtest.failing`: the service with fake models, whose last device fails after a SIGUSR1.

From then on every batch on it raises, as with a broken CUDA context.
"""

import signal
import threading
from collections.abc import Sequence
from typing import Any

from models.core.contract import Prepared
from models.families.fake.model import FakeModel
from service.process.command import main

DEVICE = "cpu:3"


def score(self: FakeModel, batch: Sequence[Prepared]) -> list[Any]:
    """Replace the score of a fake."""
    if broken.is_set() and self.info.device == DEVICE:
        raise RuntimeError("the device is gone")
    return whole(self, batch)


if __name__ == "__main__":
    broken, whole = threading.Event(), FakeModel.score
    setattr(FakeModel, "score", score)  # noqa: B010 (a method is not assigned to)
    signal.signal(signal.SIGUSR1, lambda *_: broken.set())
    main()
