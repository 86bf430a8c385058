"""What a pickled request asks for, once it is read."""

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service.errors import Invalid
from service.fields import Prompt

PROMPT: TypeAdapter[str] = TypeAdapter(Prompt)
ANSWER = "The image contains "  # what ddpo-pytorch puts before each prompt
NO_PROMPTS = (
    'the request has no "prompts", and a picture is scored here against its prompt: '
    'send {"images": [bytes, …], "prompts": [str, …]}'
)


@dataclass(frozen=True, slots=True)
class Pickled:
    """
    Attributes:
        images: picture files.
        prompts: one for each.
        compared: whether it is ddpo-pytorch's request for a comparison of texts, which expects more.
    """

    images: list[bytes]
    prompts: list[str]
    compared: bool


def request_of(value: Any) -> Pickled:
    """What the plain *value* of a body asks for.  Raises `Invalid`, which names the place."""
    if not isinstance(value, dict):
        raise Invalid(f"the pickle holds a {kind(value)}; send a dict with images and prompts")
    images = listed(value.get("images"), "images")
    compared = "prompts" not in value and "answers" in value
    if value.get("answers" if compared else "prompts") is None:
        raise Invalid(NO_PROMPTS)
    prompts = (
        [*map(answer, listed(value["answers"], "answers"))]
        if compared
        else listed(value["prompts"], "prompts")
    )
    if len(images) != len(prompts):
        raise Invalid(f"{len(images)} images and {len(prompts)} prompts: send one for each")
    return Pickled(
        [image(each, number) for number, each in enumerate(images)],
        [prompt(each, number) for number, each in enumerate(prompts)],
        compared,
    )


def listed(value: Any, name: str) -> list[Any]:
    """A list or a tuple.  Raises `Invalid`."""
    if not isinstance(value, list | tuple):
        raise Invalid(f"{name}: must be a list, not {kind(value)}")
    return list(value)


def image(value: Any, number: int) -> bytes:
    """A picture's file.  Raises `Invalid`."""
    if not isinstance(value, bytes | bytearray):
        raise Invalid(f"images/{number}: must be the bytes of a picture file, not {kind(value)}")
    return bytes(value)


def prompt(value: Any, number: int) -> str:
    """A prompt within its limits.  Raises `Invalid`."""
    try:
        return PROMPT.validate_python(value, strict=True)
    except ValidationError as exc:
        detail = exc.errors()[0]["msg"].removeprefix("Value error, ")
        raise Invalid(f"prompts/{number}: {detail}") from exc


def answer(value: Any) -> Any:
    """The prompt in an answer of ddpo-pytorch: a list of one text."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0].removeprefix(ANSWER)
    return value


def kind(value: Any) -> str:
    """What a person calls its type."""
    return "nothing" if value is None else type(value).__name__
