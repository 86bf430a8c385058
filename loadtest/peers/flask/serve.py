"""
Flask as the reward servers of flow_grpo, ddpo-pytorch and deepgen_rl have it: pickles in, pickles out.

`gunicorn --worker-class sync --workers 1 "loadtest.peers.flask.serve:create('vqa')"`: one request after the
other, a request's pictures in one go.  Only the load generator reaches this port; still nothing but plain
values is unpickled.  The service never unpickles.
"""

import io
import pickle
from typing import Any

import flask

from loadtest.peers.scoring import Role, Scorer


class Plain(pickle.Unpickler):
    """Dicts, lists, strings, bytes and numbers."""

    def find_class(self, module: str, name: str) -> Any:
        """No class, no function."""
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def create(role: Role) -> flask.Flask:
    """The app around a model that is loaded now."""
    app, scorer = flask.Flask(__name__), Scorer(role)

    @app.post("/")
    def score() -> bytes:
        data = Plain(io.BytesIO(flask.request.get_data())).load()
        asked = [scorer.prepare(*one) for one in zip(data["images"], data["texts"], strict=True)]
        return pickle.dumps({"scores": scorer.score(asked)})

    @app.get("/readyz")
    def readyz() -> str:
        return "ready"

    return app
