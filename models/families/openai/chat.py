"""Responses of a chat API."""

from collections.abc import Mapping
from typing import Any

from models.core.contract import ModelError, UpstreamError

MOST = 100  # characters of a server's text in an error


def first_choice(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the one choice of a chat completion.  Raises `UpstreamError`."""
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UpstreamError("returned no choices")
    choice: dict[str, Any] = choices[0]
    return choice


def written(answer: Mapping[str, Any], tokens: int) -> str:
    """
    Return the text of a chat completion, which may be empty.

    Raises:
        ModelError: the model refused to answer, or a filter of its server did.
        UpstreamError: the text is missing, or cut at *tokens* or otherwise.
    """
    choice = first_choice(answer)
    message, finish = choice.get("message"), choice.get("finish_reason")
    if not isinstance(message, Mapping):
        raise UpstreamError("returned no message")
    if finish == "content_filter":
        raise ModelError("a content filter of the server stopped the answer")
    if refusal := message.get("refusal"):
        raise ModelError(f"the model refused to answer: {str(refusal)[:MOST]}")
    if finish == "length":
        raise UpstreamError(f"wrote more than {tokens} tokens: the answer is cut")
    text = message.get("content")
    if not isinstance(text, str):
        thought = message.get("reasoning_content") or message.get("reasoning")
        raise UpstreamError("wrote its reasoning and no text" if thought else "wrote no text")
    if finish != "stop":
        raise UpstreamError(f"ended its answer with {str(finish)[:MOST]} and not with stop")
    return text
