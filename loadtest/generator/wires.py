"""
How a request is written for a server, and how its answer is read.

Workloads are made in the service's own format.  For a peer each request is written anew before the clock
starts, with the same pictures and the same words; in JSON, base64 is what carries a picture.
"""

import base64
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import orjson

from loadtest.workloads.questions import ASKED
from models.core.contract import QUESTION

MOST_PICTURES = 32  # infinity takes no more in a request


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: scores of each picture that got any, the error's code, when to come again."""

    scores: Sequence[Sequence[float]] = ()
    failure: str = ""
    retry_after_s: float | None = None


class Wire(Protocol):
    """The format of one server."""

    path: ClassVar[str]

    def written(self, request: bytes) -> list[bytes]:
        """Our *request* as the bodies that the server takes; most take one."""
        ...

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """What the answers to these bodies say.  Raises `ValueError` where they can't be read."""
        ...


class Scoregate:
    """Ours."""

    path: ClassVar[str] = "/score"

    def written(self, request: bytes) -> list[bytes]:
        """As it is."""
        return [request]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Scores, or the error's code."""
        said = orjson.loads(bodies[0])
        found = [list(result["scores"].values()) for result in said.get("results", ()) if result["scores"]]
        return Answer(found, said.get("code", ""), said.get("retry_after_s"))


class Json:
    """`{"images": [base64], "texts": [[str]]}` to `{"scores": [[float]]}`."""

    path: ClassVar[str] = "/score"

    def written(self, request: bytes) -> list[bytes]:
        """One body."""
        items, words = asked(request)
        return [orjson.dumps({"images": [item["image"] for item in items], "texts": words})]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Scores, or that there are none."""
        return Answer(orjson.loads(bodies[0])["scores"]) if status == 200 else Answer(failure="refused")


class Pickled:
    """The same as the trainers' servers have it: a pickled dict with the files' bytes."""

    path: ClassVar[str] = "/"

    def written(self, request: bytes) -> list[bytes]:
        """One body."""
        items, words = asked(request)
        files = [base64.b64decode(item["image"]) for item in items]
        return [pickle.dumps({"images": files, "texts": words})]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Scores, or that there are none; what our own peer has pickled."""
        return Answer(pickle.loads(bodies[0])["scores"]) if status == 200 else Answer(failure="refused")


class Infinity:
    """Embeddings as OpenAI's API has them, pictures and texts apart; the caller makes the cosines."""

    path: ClassVar[str] = "/embeddings"

    def written(self, request: bytes) -> list[bytes]:
        """The pictures, so many to a body, then the texts."""
        items, words = asked(request)
        uris = [f"data:image/jpeg;base64,{item['image']}" for item in items]
        parts = [uris[start : start + MOST_PICTURES] for start in range(0, len(uris), MOST_PICTURES)]
        bodies = [{"modality": "image", "input": part} for part in parts]
        return [
            orjson.dumps(body)
            for body in (*bodies, {"modality": "text", "input": [text for [text] in words]})
        ]

    def read(self, status: int, bodies: Sequence[bytes]) -> Answer:
        """Each picture's cosine with its text."""
        if status != 200:
            return Answer(failure="refused")
        *seen, read = (np.array([row["embedding"] for row in orjson.loads(body)["data"]]) for body in bodies)
        return Answer([[float(cosine)] for cosine in (np.concatenate(seen) * read).sum(-1)])


WIRES: dict[str, Wire] = {
    "scoregate": Scoregate(),
    "json": Json(),
    "pickle": Pickled(),
    "infinity": Infinity(),
}


def asked(request: bytes) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """The items of a request of ours, and the texts that its metric asks of the model about each."""
    body = orjson.loads(request)
    return body["items"], [texts(body["metrics"][0], item["prompt"]) for item in body["items"]]


def texts(metric: str, prompt: str) -> list[str]:
    """What a model is asked for *metric*; for dsg the eight questions, which the request brings."""
    return {"vqascore": [QUESTION.replace("{}", prompt)], "clipscore": [prompt], "dsg": ASKED}[metric]
