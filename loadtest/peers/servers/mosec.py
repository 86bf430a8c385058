"""
`python -m loadtest.peers.servers.mosec ROLE --port PORT`: mosec, with the two stages of its own examples.

Two processes decode (there are two cores), one scores up to 64 requests in a batch, which waits 10 ms for
more.  JSON and the transport between stages are mosec's defaults.
"""

import sys
from pathlib import Path
from typing import Any

import mosec
from mosec import runtime

from loadtest.peers.scoring import Scorer
from models.core.contract import Prepared

Inputs = list[list[Prepared]]


def scorer() -> Scorer:
    """Load the scorer of the role in the command line, which spawned processes share."""
    return Scorer(sys.argv[1])


class Decoding(mosec.Worker):  # type: ignore[misc]
    """Decodes files to the model's input."""

    def __init__(self) -> None:
        super().__init__()
        self._scorer = scorer()

    def forward(self, data: dict[str, Any]) -> Inputs:
        """Prepare the pictures of one request."""
        return self._scorer.prepare_all(data)


class Scoring(mosec.Worker):  # type: ignore[misc]
    """Scores batches on the device."""

    def __init__(self) -> None:
        super().__init__()
        self._scorer = scorer()

    def forward(self, data: list[Inputs]) -> list[dict[str, Any]]:
        """Score the pictures of all requests together."""
        scores = iter(self._scorer.score([inputs for request in data for inputs in request]))
        return [{"scores": [next(scores) for _ in request]} for request in data]


if __name__ == "__main__":
    program = Path(mosec.__file__).parents[1] / "bin" / "mosec"
    if program.is_file():  # `pip install --target` puts it here, and mosec does not search here
        runtime.get_mosec_path = lambda: program
    server = mosec.Server()
    server.append_worker(Decoding, num=2, route="/score")
    server.append_worker(Scoring, num=1, max_batch_size=64, max_wait_time=10, route="/score")
    server.run()
