"""JSON has one kind of number: an integer field takes 3.0, as its JSON schema says."""

from typing import Annotated, get_args, get_origin

import pytest
from pydantic import TypeAdapter, ValidationError

from service.core.fields import WHOLE, Strict, Whole
from service.metrics.common.registry import own
from service.web import app
from service.web.dialects.registry import dialects
from service.web.dialects.wire import Loose


def kinds(base):
    """All subclasses of ours; `app`, `own()` and `dialects()` load every route, metric and dialect."""
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def integers(annotation, metadata=()):
    """The metadata of each `int` within an annotation."""
    if annotation is int:
        yield metadata
    elif get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        yield from integers(inner, (*metadata, *more))
    else:
        for argument in get_args(annotation):
            yield from integers(argument, metadata)


def fields():
    """The fields of requests, files and keys that are integers and no other number."""
    for kind in {*kinds(Strict), *kinds(Loose)}:
        for name, field in kind.model_fields.items():
            if kind.__module__.startswith("service.") and float not in get_args(field.annotation):
                for metadata in integers(field.annotation, tuple(field.metadata)):
                    yield f"{kind.__module__}.{kind.__name__}.{name}", metadata


def test_every_integer_field_takes_a_whole_float():
    """`max_objects: 100.0` fits the document's schema, and some languages write no other numbers."""
    assert app
    assert own()
    assert dialects()
    found = dict(fields())

    assert len(found) > 30
    assert {"KeyTable", "GenEvalOptions", "RerankRequest"} <= {name.split(".")[-2] for name in found}
    assert [] == sorted(name for name, metadata in found.items() if WHOLE not in metadata)


@pytest.mark.parametrize("number", [3.5, float("inf"), float("nan"), True, "3"])
def test_no_other_value_becomes_an_integer(number):
    """Nothing is rounded, and neither texts nor truth values are numbers."""
    with pytest.raises(ValidationError):
        TypeAdapter(Whole, config={"strict": True}).validate_python(number)
