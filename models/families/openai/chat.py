"""Responses of a chat API."""

from collections.abc import Mapping
from typing import Any

from models.core.contract import UpstreamError


def first_choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the one choice of a chat completion.  Raises `UpstreamError`."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UpstreamError("returned no choices")
    choice: dict[str, Any] = choices[0]
    return choice
