"""The contents of a pickled request."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service.core.errors import Invalid
from service.core.fields import MAX_PROMPT, Prompt
from service.web.dialects.pickled.opcodes import LongText

PROMPT: TypeAdapter[str] = TypeAdapter(Prompt)
ANSWER = "The image contains "  # what ddpo-pytorch puts before each prompt


@dataclass(frozen=True, slots=True)
class Pickled:
    """
    Attributes:
        images: picture files.
        prompts: one per image; None without any.
        entries: by key, other values of each picture.
        alone: whether there are only pictures.
        compared: whether it is ddpo-pytorch's request for a comparison of texts, which expects more.
    """

    images: list[bytes]
    prompts: list[str] | None
    entries: Mapping[str, list[Any]]
    alone: bool
    compared: bool


def request_of(value: Any, keys: Collection[str], check_size: Callable[[int], None]) -> Pickled:
    """
    Check the plain *value* of a body.

    Args:
        keys: of entries that metrics read, at the top level or in the `metadata`.
        check_size: raises `Invalid` for too many pictures, or too few.

    Raises:
        Invalid: it names the place.
    """
    if not isinstance(value, dict):
        raise Invalid(f"the pickle must hold a dict with images and prompts, not {kind(value)}")
    images = listed(value.get("images"), "images")
    check_size(len(images))
    compared = "prompts" not in value and "answers" in value
    named = "answers" if compared else "prompts"
    prompts = None if value.get(named) is None else of_each(value[named], named, images)
    if prompts is not None:
        prompts = [prompt(answer(each) if compared else each, number) for number, each in enumerate(prompts)]
    metadata = value.get("metadata")
    places = [value, metadata] if isinstance(metadata, dict) else [value]
    entries = {
        key: of_each(place[key], key, images)
        for key in keys
        for place in places
        if not (place.get(key) is None or place[key] == [])
    }
    found = [image(each, number) for number, each in enumerate(images)]
    return Pickled(found, prompts, entries, value.keys() == {"images"}, compared)


def listed(value: Any, name: str) -> list[Any]:
    """Return a list or a tuple as a list.  Raises `Invalid`."""
    if not isinstance(value, list | tuple):
        raise Invalid(f"{name}: must be a list, not {kind(value)}")
    return list(value)


def of_each(value: Any, name: str, images: Collection[Any]) -> list[Any]:
    """Return a list with an entry for each of *images*.  Raises `Invalid`."""
    found = listed(value, name)
    if len(found) != len(images):
        raise Invalid(f"{len(images)} images and {len(found)} {name}: send one for each")
    return found


def image(value: Any, number: int) -> bytes:
    """Return a picture's file.  Raises `Invalid`."""
    if not isinstance(value, bytes | bytearray):
        raise Invalid(f"images/{number}: must be the bytes of a picture file, not {kind(value)}")
    return bytes(value)


def prompt(value: Any, number: int) -> str:
    """Check a prompt.  Raises `Invalid`."""
    if isinstance(value, LongText):
        raise Invalid(f"prompts/{number}: String should have at most {MAX_PROMPT} characters")
    try:
        return PROMPT.validate_python(value, strict=True)
    except ValidationError as exc:
        detail = exc.errors()[0]["msg"].removeprefix("Value error, ")
        raise Invalid(f"prompts/{number}: {detail}") from exc


def answer(value: Any) -> Any:
    """Return the prompt in an answer of ddpo-pytorch: a list of one text."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0].removeprefix(ANSWER)
    return value


def kind(value: Any) -> str:
    """Return the name of a value's type in error messages."""
    if isinstance(value, LongText):
        return "str"
    return "nothing" if value is None else type(value).__name__
