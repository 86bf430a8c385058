"""A search for the model that describes a place of a request."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel


def models_at(annotation: Any, place: Sequence[str | int]) -> Iterator[type[BaseModel]]:
    """Yield the models that a value at *place*, below a value of the type *annotation*, may be."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not place:
            yield annotation
        elif field := annotation.model_fields.get(str(place[0])):
            yield from models_at(field.annotation, place[1:])
        return
    entry = bool(place) and isinstance(place[0], int) and annotation_is_list(annotation)
    for argument in get_args(annotation):
        yield from models_at(argument, place[1:] if entry else place)


def annotation_is_list(annotation: Any) -> bool:
    """Return True for `list[...]`."""
    return getattr(annotation, "__origin__", None) is list
