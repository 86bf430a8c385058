"""Types of what callers send: strict, bounded, and refused with a sentence."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, Tag, model_validator
from pydantic_core import PydanticCustomError

MAX_PROMPT = 4000  # characters
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
            raise PydanticCustomError("too_many_fields", "holds unknown fields, and more than will be named")
        return value


def branch(name: str) -> Tag:
    """The tag of one branch of a union."""
    BRANCHES.add(name)
    return Tag(name)


def clean(text: str) -> str:
    """Refuse NUL, as pydantic does lone surrogates; everything else is kept byte for byte."""
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


def filled(text: str) -> str:
    """Refuse a text without a visible character."""
    if not text.strip():
        raise ValueError("is empty")
    return clean(text)


def slotted(template: str) -> str:
    """Refuse a template without one place for a text."""
    if template.count("{}") != 1:
        raise ValueError("must hold {} exactly once, where the text goes")
    return template


Name = Annotated[str, StringConstraints(max_length=64), AfterValidator(clean)]
Prompt = Annotated[str, StringConstraints(max_length=MAX_PROMPT), AfterValidator(filled)]
Template = Annotated[Prompt, AfterValidator(slotted)]
