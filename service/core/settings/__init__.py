"""All settings: one frozen tree, read once from a TOML profile and the environment."""

from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator

from models.core.contract import Temporary

T = TypeVar("T")


class SettingsError(Exception):
    """The configuration is wrong; the message is one line that names the setting."""


class NotYet(SettingsError, Temporary):
    """Something that a setting names is missing or in use, but may become available later."""


def not_empty(value: Any) -> Any:
    """Refuse an empty text, such as Compose makes of a variable that is not set: it would protect nothing."""
    if isinstance(value, str) and not value.strip():
        raise ValueError("is empty; give a value, or leave the setting out")
    return value


Given = Annotated[T, BeforeValidator(not_empty)]
"""The type of a setting that protects: an address to listen on, a file of keys or of certificates."""
