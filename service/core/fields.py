"""Types of what callers send: strict, bounded, and refused with a sentence."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

MAX_PROMPT = 4000  # characters
SLOT = "{}"  # where a template takes a text
MAX_UNKNOWN = 16  # fields of one object that are named in a refusal

# Names of unions' branches.  Pydantic puts them into an error's place; a JSON pointer leaves them out.
BRANCHES: set[str] = set()


class Strict(BaseModel):
    """Refuses unknown fields, and a number in a string."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """One error for a heap of unknown fields instead of one for each."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields) + MAX_UNKNOWN:
            raise PydanticCustomError("too_many_fields", f"has more than {MAX_UNKNOWN} unknown fields")
        return value


def branch(name: str) -> Tag:
    """The tag of one branch of a union."""
    BRANCHES.add(name)
    return Tag(name)


def clean(text: str) -> str:
    """Refuse NUL, as pydantic does lone surrogates; everything else is kept byte for byte."""
    if "\0" in text:
        raise ValueError("contains a NUL character")
    return text


def filled(text: str) -> str:
    """Refuse a text without a visible character."""
    if not text.strip():
        raise ValueError("is empty")
    return clean(text)


def slotted(template: str) -> str:
    """Refuse a template without one place for a text."""
    if template.count(SLOT) != 1:
        raise ValueError("must contain {} exactly once, where the text goes")
    return template


def slotted_once_or_not(text: str) -> str:
    """Refuse a text with two places for another."""
    if text.count(SLOT) > 1:
        raise ValueError("must not contain {} more than once")
    return text


def whole(number: Any) -> Any:
    """3.0 as 3, since both are the same number in JSON; anything else as it is."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def schema_keywords(**keywords: Any) -> Any:
    """Keywords of the JSON schema that say what a validator checks."""
    return Field(json_schema_extra=keywords)


# The rules above for readers of the schema.  Places in braces are said in words: generators of clients stop
# at a pattern with braces.  `\s` is spelled out, because each dialect of regular expressions means something
# else by it, and in codes, because not every dialect knows `\t` in a range.
SPACE = r"\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CLEAN = r"^[^\x00]*$"
FILLED = rf"^[^\x00]*[^\x00{SPACE}][^\x00]*$"
SLOTTED = "Contains {} exactly once, where the text goes."
SLOTTED_ONCE_OR_NOT = "Contains {} at most once, where the prompt goes."

WHOLE = BeforeValidator(whole)  # behind the limits, or the schema loses them
Name = Annotated[str, StringConstraints(max_length=64), AfterValidator(clean), schema_keywords(pattern=CLEAN)]
Prompt = Annotated[
    str,
    StringConstraints(max_length=MAX_PROMPT),
    AfterValidator(filled),
    schema_keywords(pattern=FILLED, minLength=1),
]
Orient = Literal["as_stored", "exif"]  # whether pixels are turned as their EXIF orientation says
Template = Annotated[Prompt, AfterValidator(slotted), schema_keywords(description=SLOTTED)]
TextOrTemplate = Annotated[
    Prompt, AfterValidator(slotted_once_or_not), schema_keywords(description=SLOTTED_ONCE_OR_NOT)
]
