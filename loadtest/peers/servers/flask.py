"""
Flask as in the reward servers of flow_grpo, ddpo-pytorch and deepgen_rl, with pickled bodies.

`gunicorn --worker-class sync --workers 1 "loadtest.peers.servers.flask:create('vqa')"`: one request after the
other, all pictures of a request together.  Only the load generator reaches this port; still only plain
values are unpickled.  The service never unpickles.
"""

import io
import pickle
from typing import Any

import flask

from loadtest.peers.scoring import Scorer


class Plain(pickle.Unpickler):
    """An unpickler of dicts, lists, strings, bytes and numbers only."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse every class and function."""
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def create(role: str) -> flask.Flask:
    """Load the model, and return the app around it."""
    app, scorer = flask.Flask(__name__), Scorer(role)

    @app.post("/")
    def score() -> bytes:
        data = Plain(io.BytesIO(flask.request.get_data())).load()
        inputs = [scorer.prepare(*one) for one in zip(data["images"], data["texts"], strict=True)]
        return pickle.dumps({"scores": scorer.score(inputs)})

    @app.get("/readyz")
    def readyz() -> str:
        return "ready"

    return app
