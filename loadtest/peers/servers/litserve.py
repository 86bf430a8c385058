"""
`python -m loadtest.peers.servers.litserve ROLE PORT`: LitServe, with its own batching.

Up to 64 requests in a batch, which waits 10 ms for more.  One worker for the one device, which also decodes,
picture after picture.  `fast_queue`, its faster transport between its two processes, is set, but version
0.2.19 ignores it and uses its multiprocessing queue (Lightning-AI/LitServe #751).
"""

import sys
from collections.abc import Sequence
from typing import Any

import litserve

from loadtest.peers.scoring import Scorer
from models.core.contract import Prepared

Inputs = list[list[Prepared]]


class Api(litserve.LitAPI):  # type: ignore[misc]
    """The scorer of a role; a request contains any number of pictures."""

    def __init__(self, role: str) -> None:
        super().__init__(max_batch_size=64, batch_timeout=0.01, api_path="/score")
        self.role = role

    def setup(self, device: str) -> None:
        """Load the model, in the worker."""
        self.scorer = Scorer(self.role)

    def decode_request(self, request: dict[str, Any]) -> Inputs:
        """Prepare the pictures of one request."""
        return self.scorer.prepare_all(request)

    def batch(self, inputs: Sequence[Inputs]) -> Sequence[Inputs]:
        """Return the requests unchanged: their lengths differ, so they cannot be one tensor."""
        return inputs

    def predict(self, batch: Sequence[Inputs]) -> list[list[list[float]]]:
        """Score the pictures of all requests together."""
        scores = iter(self.scorer.score([inputs for request in batch for inputs in request]))
        return [[next(scores) for _ in request] for request in batch]

    def unbatch(self, output: list[list[list[float]]]) -> list[list[list[float]]]:
        """Return the scores, which are already split by request."""
        return output

    def encode_response(self, output: list[list[float]]) -> dict[str, Any]:
        """Return the response to one request."""
        return {"scores": output}


if __name__ == "__main__":
    server = litserve.LitServer(Api(sys.argv[1]), accelerator="cpu", timeout=600, fast_queue=True)
    server.run(host="127.0.0.1", port=int(sys.argv[2]), generate_client_file=False, log_level="warning")
