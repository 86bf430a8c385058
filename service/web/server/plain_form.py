"""A form of plain fields, as `curl -F image=@cat.png -F prompt="a cat"` sends, as the content of JSON."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

from service.core.errors import Fault, Invalid
from service.web.problems import MAX_FAULTS, pointer
from service.web.server.multipart import IMAGE, METRICS, REQUEST, wrong

IMAGES, ITEMS = "images", "items"  # lists of the JSON, in whose place a form has files
TEXTS = ("id", "prompt")  # any other field is JSON, or else a text


def content_of(
    fields: Mapping[str, str], images: Sequence[str], others: Sequence[str], wire: type[BaseModel]
) -> dict[str, Any]:
    """
    Return the content of a request of the type *wire*, whose validation follows.

    Args:
        images: names of the file parts that were sent as `image`.
        others: names of the other file parts.

    Raises:
        Invalid: *wire* has no such field, or a file is not named `image`; twenty of them are named.
        Malformed: there is no picture.
    """
    if faults := [*islice(faults_of(fields, others, wire), MAX_FAULTS)]:
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)
    if not images or IMAGES not in wire.model_fields:
        raise wrong(f"there is no part named '{REQUEST}', and no file part named '{IMAGE}'")
    content = {name: value_of(name, text) for name, text in fields.items()}
    pictures = [{"part": name} for name in images]
    if len(pictures) == 1 and IMAGE in wire.model_fields:
        return {**content, IMAGE: pictures[0]}
    return {**content, IMAGES: pictures}


def faults_of(fields: Mapping[str, str], others: Sequence[str], wire: type[BaseModel]) -> Iterator[Fault]:
    """Yield a fault for each field that *wire* lacks, and for each file that is not named `image`."""
    valid = sorted({*wire.model_fields, REQUEST} - {IMAGES, ITEMS})
    for name in fields:
        if name == IMAGE:
            detail = f"has no filename; curl sends a file with -F {IMAGE}=@FILE"
            yield Fault(pointer([name]), "value_error", detail)
        elif name not in valid:
            yield Fault.unknown(pointer([name]), "extra_forbidden", "there is no such field", name, valid)
    for name in others:
        detail = f"a file that is not named '{IMAGE}' needs a part '{REQUEST}' that refers to it"
        yield Fault.unknown(pointer([name]), "extra_forbidden", detail, name, [IMAGE])


def value_of(name: str, text: str) -> Any:
    """Return the value of a field: its JSON, or *text* itself, which validation may refuse."""
    if name == METRICS:
        return [each.strip() for each in text.split(",")]
    if name in TEXTS:
        return text
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return text
