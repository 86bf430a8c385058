"""A search for the types that describe a place of a request."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

Place = Sequence[str | int]


def models_at(annotation: Any, place: Place) -> Iterator[type[BaseModel]]:
    """Yield the models that a value at *place*, below a value of the type *annotation*, may be."""
    return (found for found in types_at(annotation, place) if get_origin(found) is not Literal)


def words_at(annotation: Any, place: Place) -> Iterator[str]:
    """Yield the texts of the literals that a value at *place* may be."""
    for found in types_at(annotation, place):
        if get_origin(found) is Literal:
            yield from (value for value in get_args(found) if isinstance(value, str))


def types_at(annotation: Any, place: Place) -> Iterator[Any]:
    """Yield the models and literals that a value at *place* may be."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not place:
            yield annotation
        elif field := annotation.model_fields.get(str(place[0])):
            yield from types_at(field.annotation, place[1:])
        return
    if get_origin(annotation) is Literal and not place:
        yield annotation
    entry = bool(place) and isinstance(place[0], int) and get_origin(annotation) is list
    for argument in get_args(annotation):
        yield from types_at(argument, place[1:] if entry else place)
