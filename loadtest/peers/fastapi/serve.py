"""
`python -m loadtest.peers.fastapi.serve ROLE PORT`: a FastAPI app that does nothing but ask the model.

One request after the other, on the event loop's own thread: no queue, no second thread, no limit.  What it
takes for one request is HTTP, Python and the model, and any service in FastAPI has to pay for these.
"""

import sys

import orjson
import uvicorn
from fastapi import FastAPI, Request, Response

from loadtest.peers.scoring import Role, Scorer, role_of


def create(role: Role) -> FastAPI:
    """The app around a model that is loaded now."""
    app, scorer = FastAPI(), Scorer(role)

    @app.post("/score")
    async def score(request: Request) -> Response:
        asked = scorer.prepare_all(orjson.loads(await request.body()))
        return Response(orjson.dumps({"scores": scorer.score(asked)}), media_type="application/json")

    @app.get("/readyz")
    def readyz() -> str:
        return "ready"

    return app


if __name__ == "__main__":
    uvicorn.run(create(role_of(sys.argv[1])), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
