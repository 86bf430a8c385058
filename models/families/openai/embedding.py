"""A model for sentences behind an OpenAI-compatible API: `POST embeddings`."""

from collections.abc import Mapping
from math import hypot, inf
from typing import Any

import numpy as np

from models.core.calls import TextCall
from models.core.contract import Post, Prepared, UpstreamError
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

    def opposites(self) -> tuple[TextCall, ...]:
        """Return two texts of which one is true."""
        return tuple(map(TextCall, TEXTS))

    async def answer(self, prepared: Prepared, post: Post) -> Embedding:
        """Return the embedding at length 1.  Raises `UpstreamError` if it is no vector of numbers."""
        numbers = numbers_of(await post("embeddings", prepared.data))
        length = hypot(*numbers)
        if not 0 < length < inf:
            raise UpstreamError("returned an embedding without a direction")
        return Embedding((np.array(numbers) / length).astype(np.float32))


def numbers_of(answer: Mapping[str, Any]) -> list[float]:
    """Return the numbers of the one embedding of a response.  Raises `UpstreamError` for anything else."""
    match answer:
        case {"data": [{"embedding": [_, *_] as numbers}]}:
            if all(type(number) in (int, float) for number in numbers):
                return [*map(float, numbers)]
    raise UpstreamError("returned no embedding of one text")


def from_settings(settings: RemoteSettings) -> OpenAiEmbedding:
    """Return the model of a table, without a request."""
    return OpenAiEmbedding(**served_arguments(settings))
