"""Published answers in JSON, and what is wrong with them, in one line."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Content = TypeVar("Content", bound=BaseModel)


def parsed(kind: type[Content], data: bytes, place: str) -> Content:
    """
    Parse JSON; *place* is where it stands.

    Raises:
        ValueError: it is not of this *kind*, or an object has a key twice, of which a parser keeps one.
    """
    try:
        json.loads(data, object_pairs_hook=once)
        return kind.model_validate_json(data)
    except ValidationError as exc:
        raise ValueError(f"{place}: {first_fault(exc)}") from exc
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"{place}: the line: {exc}") from exc


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object.  Raises `ValueError` if a key is there twice."""
    found = dict[str, Any]()
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is there twice")
        found[key] = value
    return found


def first_fault(exc: ValidationError) -> str:
    """Return the field and the message of the first error."""
    first = exc.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg']}"
