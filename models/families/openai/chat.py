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


def written(answer: Mapping[str, Any], tokens: int) -> str:
    """Return the text of a chat completion.  Raises `UpstreamError` if it is missing or cut at *tokens*."""
    choice = first_choice(answer)
    text = choice.get("message", {}).get("content")
    if choice.get("finish_reason") != "stop" or not isinstance(text, str):
        raise UpstreamError(f"wrote more than {tokens} tokens, or no text")
    return text
