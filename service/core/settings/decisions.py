"""The settings of the log of decisions."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from models.core.settings import Section
from service.core.settings import Given, SettingsError

Prompts = Literal["text", "digest", "off"]


class DecisionSettings(Section):
    """Where decisions are logged, and what of them."""

    log: Given[str | None] = Field(
        None, pattern="^sqlite:///.", description="A file, as `sqlite:///PATH`; without it nothing is logged."
    )
    prompts: Prompts = Field("text", description="What is logged of prompts: the text, a digest, or nothing.")
    keep_days: int = Field(90, ge=1, le=36_500, description="Days until a row is deleted.")

    @property
    def path(self) -> Path | None:
        """The SQLite file.  Raises `SettingsError` if the home directory is needed and unknown."""
        try:
            return Path(self.log.removeprefix("sqlite:///")).expanduser() if self.log else None
        except RuntimeError as exc:
            raise SettingsError(f"decisions.log: {self.log}: {exc}") from exc
