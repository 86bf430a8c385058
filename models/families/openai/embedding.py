"""A model for sentences behind an OpenAI-compatible API: `POST embeddings`."""

from collections.abc import Mapping
from math import hypot, inf
from typing import Any

import numpy as np

from models.core.calls import TextCall
from models.core.contract import KnownCalls, Post, Prepared, UpstreamError
from models.core.examples import TEXTS
from models.core.outcomes import Embedding
from models.core.settings import RemoteSettings
from models.families.openai import EMBEDDING, ServedModel, served_arguments


class OpenAiEmbedding(ServedModel):
    """A model for sentences of that API.  Args as in `ServedModel`."""

    family = EMBEDDING

    def prepare(self, call: TextCall) -> Prepared:
        """Build the request's body; the cost is the number of characters."""
        return Prepared(len(call.text), self.body(input=[call.text], encoding_format="float"))

    def known_calls(self) -> KnownCalls:
        """Return two texts of which one is true."""
        return KnownCalls.of(*map(TextCall, TEXTS), compared="embeddings of two texts")

    async def answer(self, prepared: Prepared, post: Post) -> Embedding:
        """Return the embedding at length 1.  Raises `UpstreamError` if it is no vector of numbers."""
        [embedding] = embeddings_of(await post("embeddings", prepared.data), 1)
        return embedding


def embeddings_of(answer: Mapping[str, Any], count: int) -> list[Embedding]:
    """
    Return the *count* embeddings of a response, at length 1, in the order of the request.

    Raises:
        UpstreamError: it has another number of them, or one is no vector of numbers with a direction.
    """
    match answer:
        case {"data": [*rows]} if len(rows) == count:
            return [embedding_of(row) for row in placed(rows)]
        case {"data": [*rows]}:
            raise UpstreamError(f"returned {len(rows)} embeddings, not {count}")
    raise UpstreamError("returned no embeddings")


def placed(rows: list[Any]) -> list[Any]:
    """Return the rows of a response by their `index`, or as they are if none has one."""
    indices = [row.get("index") if isinstance(row, Mapping) else None for row in rows]
    if all(index is None for index in indices):
        return rows
    by_index = {index: row for index, row in zip(indices, rows, strict=True) if type(index) is int}
    if by_index.keys() != {*range(len(rows))}:
        raise UpstreamError("returned embeddings whose indices are not those of the request")
    return [by_index[index] for index in range(len(rows))]


def embedding_of(row: Any) -> Embedding:
    """Return the embedding of a row of a response at length 1.  Raises `UpstreamError`."""
    match row:
        case {"embedding": [_, *_] as numbers} if all(type(each) in (int, float) for each in numbers):
            length = hypot(*numbers)
            if not 0 < length < inf:
                raise UpstreamError("returned an embedding without a direction")
            return Embedding((np.array(numbers, float) / length).astype(np.float32))
    raise UpstreamError("returned an embedding that is not a list of numbers")


def from_settings(settings: RemoteSettings) -> OpenAiEmbedding:
    """Return the model of a table, without a request."""
    return OpenAiEmbedding(**served_arguments(settings))
