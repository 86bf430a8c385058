"""A model's outcome as bytes and back, to the last bit; never by pickle."""

from base64 import b64decode, b64encode
from typing import Any

import numpy as np
import orjson

from models.base import Embedding, Likelihood, is_finite

FLOAT32 = np.dtype("<f4")


def encode(outcome: Any) -> bytes | None:
    """JSON: floats in as many digits as tell them apart, vectors as base64; None for what is neither."""
    match outcome:
        case Likelihood(log_probs, yes, no, truncated):
            numbers = {"log_probs": [*map(float, log_probs)], "log_p_yes": float(yes), "log_p_no": float(no)}
            return orjson.dumps({**numbers, "truncated": truncated})
        case Embedding(vector, truncated):
            content = b64encode(vector.astype(FLOAT32, copy=False).tobytes()).decode()
            return orjson.dumps({"vector": content, "truncated": truncated})
    return None


def decode(value: bytes) -> Likelihood | Embedding | None:
    """What `encode` wrote; None where the bytes are something else, or a part of it."""
    try:
        match orjson.loads(value):
            case {
                "log_probs": [_, *_] as log_probs,
                "log_p_yes": float(yes),
                "log_p_no": float(no),
                "truncated": bool(truncated),
            } if all(type(number) is float for number in log_probs):
                return finite(Likelihood(tuple(log_probs), yes, no, truncated))
            case {"vector": str(content), "truncated": bool(truncated)} if content:
                vector = np.frombuffer(b64decode(content, validate=True), FLOAT32)
                return finite(Embedding(vector, truncated))
    except ValueError:  # not JSON, not base64, or not whole numbers of a vector
        pass
    return None


def finite(outcome: Likelihood | Embedding) -> Likelihood | Embedding | None:
    """The outcome, unless a number in it is none."""
    return outcome if is_finite(outcome) else None
