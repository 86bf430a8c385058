"""
`python -m loadtest.peers.mosec.serve ROLE --port PORT`: mosec, in the two stages of its own examples.

Two processes decode (there are two cores), one scores up to 64 requests in a batch, which waits 10 ms for
more.  What is JSON, and what goes from stage to stage, is mosec's default.
"""

import sys
from typing import Any

import mosec

from loadtest.peers.scoring import Scorer, role_of
from models.core.contract import Prepared

Asked = list[list[Prepared]]


def scorer() -> Scorer:
    """Of the role that the command names; spawned processes have its arguments, too."""
    return Scorer(role_of(sys.argv[1]))


class Decoding(mosec.Worker):  # type: ignore[misc]
    """From files to what the model takes."""

    def __init__(self) -> None:
        super().__init__()
        self._scorer = scorer()

    def forward(self, data: dict[str, Any]) -> Asked:
        """The pictures of one request."""
        return self._scorer.prepare_all(data)


class Scoring(mosec.Worker):  # type: ignore[misc]
    """The device."""

    def __init__(self) -> None:
        super().__init__()
        self._scorer = scorer()

    def forward(self, data: list[Asked]) -> list[dict[str, Any]]:
        """The pictures of all requests together."""
        scores = iter(self._scorer.score([asked for request in data for asked in request]))
        return [{"scores": [next(scores) for _ in request]} for request in data]


if __name__ == "__main__":
    server = mosec.Server()
    server.append_worker(Decoding, num=2, route="/score")
    server.append_worker(Scoring, num=1, max_batch_size=64, max_wait_time=10, route="/score")
    server.run()
