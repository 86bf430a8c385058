"""
`python -m loadtest.peers.servers.fastapi ROLE PORT`: a FastAPI app that only calls the model.

One request after the other, on the event loop's thread: no queue, no second thread, no limit.  Its time per
request is HTTP, Python and the model, the minimum of any service in FastAPI.
"""

import sys

import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

from loadtest.peers.scoring import Scorer


def create(role: str) -> FastAPI:
    """Load the model, and return the app around it."""
    app, scorer = FastAPI(), Scorer(role)

    @app.post("/score")
    async def score(request: Request) -> Response:
        inputs = scorer.prepare_all(orjson.loads(await request.body()))
        return Response(orjson.dumps({"scores": scorer.score(inputs)}), media_type="application/json")

    @app.get("/readyz")
    def readyz() -> str:
        return "ready"

    return app


if __name__ == "__main__":
    uvicorn.run(create(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
