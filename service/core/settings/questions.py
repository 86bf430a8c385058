"""The settings of question styles."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from models.core.settings import Section

Files = Path | dict[str, Path]
StyleName = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]{0,63}$")]


class StyleSettings(Section):
    """A question style from files; a parser with several calls needs a table of files, by the call's name."""

    parser: str = Field(description="The form of the messages and of the LLM's answers.")
    instructions: Files = Field(description="File of the text before the prompt.")
    examples: Files | None = Field(None, description="File of in-context examples, after the instructions.")


class QuestionSettings(Section):
    """
    How question sets are written.

    Attributes:
        styles: the profile's own styles, by name.
    """

    styles: dict[StyleName, StyleSettings] = Field({})
