"""
Wire formats: how requests are written for a server, and how its responses are read.

Workloads are made in the service's own format.  For a peer each request is converted before the clock
starts, with the same pictures and texts; in JSON, pictures are base64.
"""

import base64
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import orjson

from loadtest.corpus import QUESTIONS
from models.core.contract import QUESTION

MAX_IMAGES = 32  # infinity takes no more in a request


@dataclass(frozen=True, slots=True)
class Answer:
    """A parsed response: scores of each scored picture, the error's code, when to retry."""

    scores: Sequence[Sequence[float]] = ()
    failure: str = ""
    retry_after_s: float | None = None


class Wire(Protocol):
    """The format of one server."""

    path: ClassVar[str]

    def written(self, request: bytes) -> list[bytes]:
        """Convert our *request* to the bodies that the server takes, usually one."""
        ...

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Parse the responses to these bodies.  Raises `ValueError` if they are invalid."""
        ...


class Scoregate:
    """The service's own format."""

    path: ClassVar[str] = "/score"

    def written(self, request: bytes) -> list[bytes]:
        """Return the request unchanged."""
        return [request]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Return scores, or the error's code."""
        answer = orjson.loads(bodies[0])
        found = [list(result["scores"].values()) for result in answer.get("results", ()) if result["scores"]]
        return Answer(found, answer.get("code", ""), answer.get("retry_after_s"))


class Decide:
    """`POST /decide` by the policy `show`; a decision counts as a score, whatever it is made of."""

    path: ClassVar[str] = "/decide"

    def written(self, request: bytes) -> list[bytes]:
        """Return one body."""
        body = orjson.loads(request)
        kept = {name: body[name] for name in ("items", "timeout_ms")}
        return [orjson.dumps({"policy": "show", **kept})]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Return a number for each decision, or the error's code."""
        answer = orjson.loads(bodies[0])
        return Answer([[0.0] for _ in answer.get("decisions", ())], answer.get("code", ""))


class Json:
    """`{"images": [base64], "texts": [[str]]}` to `{"scores": [[float]]}`."""

    path: ClassVar[str] = "/score"

    def written(self, request: bytes) -> list[bytes]:
        """Return one body."""
        items, words = texts_of(request)
        return [orjson.dumps({"images": [item["image"] for item in items], "texts": words})]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Return scores, or the failure `refused`."""
        return Answer(orjson.loads(bodies[0])["scores"]) if status == 200 else Answer(failure="refused")


class Pickled:
    """The format of trainers' servers: a pickled dict with the files' bytes."""

    path: ClassVar[str] = "/"

    def written(self, request: bytes) -> list[bytes]:
        """Return one body."""
        items, words = texts_of(request)
        files = [base64.b64decode(item["image"]) for item in items]
        return [pickle.dumps({"images": files, "texts": words})]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Return scores, or the failure `refused`; only our own peer's pickles are read."""
        return Answer(pickle.loads(bodies[0])["scores"]) if status == 200 else Answer(failure="refused")


class Infinity:
    """Embeddings in OpenAI's format, pictures and texts separately; the caller computes the cosines."""

    path: ClassVar[str] = "/embeddings"

    def written(self, request: bytes) -> list[bytes]:
        """Return bodies of pictures, then one of texts."""
        items, words = texts_of(request)
        uris = [f"data:image/jpeg;base64,{item['image']}" for item in items]
        parts = [uris[start : start + MAX_IMAGES] for start in range(0, len(uris), MAX_IMAGES)]
        bodies = [{"modality": "image", "input": part} for part in parts]
        return [
            orjson.dumps(body)
            for body in (*bodies, {"modality": "text", "input": [text for [text] in words]})
        ]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Return the cosine of each picture with its text."""
        if status != 200:
            return Answer(failure="refused")
        *seen, read = (np.array([row["embedding"] for row in orjson.loads(body)["data"]]) for body in bodies)
        return Answer([[float(cosine)] for cosine in (np.concatenate(seen) * read).sum(-1)])


WIRES: dict[str, Wire] = {
    "scoregate": Scoregate(),
    "decide": Decide(),
    "json": Json(),
    "pickle": Pickled(),
    "infinity": Infinity(),
}


def texts_of(request: bytes) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Return the items of our request, and each one's texts for the model."""
    body = orjson.loads(request)
    return body["items"], [texts(body["metrics"][0], item["prompt"]) for item in body["items"]]


def texts(metric: str, prompt: str) -> list[str]:
    """Return the model's texts for *metric*; dsg has eight fixed questions, sent with the request."""
    return {"vqascore": [QUESTION.replace("{}", prompt)], "clipscore": [prompt], "dsg": QUESTIONS}[metric]
