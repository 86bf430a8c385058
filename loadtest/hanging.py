"""
`python -m loadtest.hanging`: the service with fake models, which hang for ever after a SIGUSR1.

So does a GPU whose driver does not return, or a server that accepts a request and never answers.
"""

import signal
import threading
from collections.abc import Sequence
from typing import Any

from models.core.contract import Prepared
from models.families.fake.model import FakeModel
from service.process.command import main


def score(self: FakeModel, batch: Sequence[Prepared]) -> list[Any]:
    """Replace the score of a fake."""
    if hung.is_set():
        threading.Event().wait()
    return whole(self, batch)


if __name__ == "__main__":
    hung, whole = threading.Event(), FakeModel.score
    setattr(FakeModel, "score", score)  # noqa: B010 (a method is not assigned to)
    signal.signal(signal.SIGUSR1, lambda *_: hung.set())
    main()
