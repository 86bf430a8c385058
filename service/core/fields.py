"""Types of request fields: strict and bounded, with plain error messages."""

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

MAX_PROMPT = 4000  # characters
PLACEHOLDER = "{}"  # placeholder for the text of a template
MAX_UNKNOWN = 16  # fields of one object that an error lists

# Names of unions' branches.  Pydantic adds them to an error's location; JSON pointers do not contain them.
BRANCHES: set[str] = set()


class Strict(BaseModel):
    """A model that refuses unknown fields and does not convert types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        """Raise a single error for many unknown fields instead of one for each."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields) + MAX_UNKNOWN:
            raise PydanticCustomError("too_many_fields", f"has more than {MAX_UNKNOWN} unknown fields")
        return value


def few(count: int) -> BeforeValidator:
    """
    Refuse an object of more than *count* entries before any of them is checked.

    Pydantic stops at the limit of an object only while entries are valid, and keeps each fault of all others.
    """

    def check(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > count:
            message = f"has {len(value)} entries; at most {count} are allowed"
            raise PydanticCustomError("too_long", "{message}", {"message": message})
        return value

    return BeforeValidator(check)


def branch(name: str) -> Tag:
    """Return the tag of a union's branch, and register it in `BRANCHES`."""
    BRANCHES.add(name)
    return Tag(name)


def first_fault(exc: ValidationError, *above: str) -> str:
    """Return the first fault of a table of a file, after its place, which is below *above*, as one line."""
    first = exc.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in (*above, *first["loc"]) if part not in BRANCHES)
    return ": ".join(filter(None, (place, first["msg"].removeprefix("Value error, "))))


def clean(text: str) -> str:
    """Refuse NUL; pydantic refuses lone surrogates.  Other characters are kept."""
    if "\0" in text:
        raise ValueError("contains a NUL character")
    return text


def of_one_line(text: str) -> str:
    """Refuse control characters, such as a line break."""
    if re.search(f"[{CONTROL}]", text):
        raise ValueError("contains a control character")
    return text


def filled(text: str) -> str:
    """Refuse a text without a visible character."""
    if not text.strip():
        raise ValueError("is empty")
    return clean(text)


def with_placeholder(template: str) -> str:
    """Refuse a template that does not contain `{}` exactly once."""
    if template.count(PLACEHOLDER) != 1:
        raise ValueError("must contain {} exactly once, where the text goes")
    return template


def without_second_placeholder(text: str) -> str:
    """Refuse a text that contains `{}` more than once."""
    if text.count(PLACEHOLDER) > 1:
        raise ValueError("must not contain {} more than once")
    return text


def whole(number: Any) -> Any:
    """
    Convert a float such as 3.0 to an int, since JSON does not distinguish them; return other values
    unchanged.
    """
    return int(number) if isinstance(number, float) and number.is_integer() else number


def schema_keywords(**keywords: Any) -> Any:
    """Add keywords to the JSON schema that describe what a validator checks."""
    return Field(json_schema_extra=keywords)


# The rules above as JSON schema.  Placeholders in braces are described in words, since client generators fail
# at patterns with braces.  `\s` is written as codes, because its meaning differs between regular expression
# dialects, and not all of them support `\t` in a range.
SPACE = r"\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CLEAN_PATTERN = r"^[^\x00]*$"
CONTROL = r"\x00-\x1f\x7f"
LINE_PATTERN = rf"^[^{CONTROL}]+$"
FILLED_PATTERN = rf"^[^\x00]*[^\x00{SPACE}][^\x00]*$"
PLACEHOLDER_ONCE = "Contains {} exactly once, where the text goes."
PLACEHOLDER_AT_MOST_ONCE = "Contains {} at most once, where the prompt goes."

WHOLE = BeforeValidator(whole)  # after the limits, or the schema loses them
Whole = Annotated[int, WHOLE]
Name = Annotated[
    str, StringConstraints(max_length=64), AfterValidator(clean), schema_keywords(pattern=CLEAN_PATTERN)
]
Revision = Annotated[
    str,
    StringConstraints(min_length=1, max_length=256),
    AfterValidator(of_one_line),
    schema_keywords(pattern=LINE_PATTERN),
]
Prompt = Annotated[
    str,
    StringConstraints(max_length=MAX_PROMPT),
    AfterValidator(filled),
    schema_keywords(pattern=FILLED_PATTERN, minLength=1),
]
Orient = Literal["as_stored", "exif"]  # if pixels are rotated by their EXIF orientation
Template = Annotated[Prompt, AfterValidator(with_placeholder), schema_keywords(description=PLACEHOLDER_ONCE)]
TextOrTemplate = Annotated[
    Prompt, AfterValidator(without_second_placeholder), schema_keywords(description=PLACEHOLDER_AT_MOST_ONCE)
]
