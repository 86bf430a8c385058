"""Chat requests to a server, and a question LLM behind it."""

from collections.abc import Mapping
from typing import Any

from models.core.calls import GenerateCall
from models.core.contract import ModelError, Post, Prepared, UpstreamError
from models.core.outcomes import Text
from models.families.openai import LLM, LlmSettings, ServedModel, served_arguments, with_schema

MAX_QUOTED_CHARACTERS = 100  # an error quotes so much of a server's text


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
        raise ModelError(f"the model refused to answer: {str(refusal)[:MAX_QUOTED_CHARACTERS]}")
    if finish == "length":
        raise UpstreamError(f"wrote more than {tokens} tokens: the answer is cut")
    text = message.get("content")
    if not isinstance(text, str):
        thought = message.get("reasoning_content") or message.get("reasoning")
        raise UpstreamError("wrote its reasoning and no text" if thought else "wrote no text")
    if finish != "stop":
        raise UpstreamError(f"ended its answer with {str(finish)[:MAX_QUOTED_CHARACTERS]} and not with stop")
    return text


class OpenAiLLM(ServedModel):
    """
    A chat model behind OpenAI's API; arguments as of `ServedModel`.

    Args:
        max_tokens: of an answer, at most.
    """

    family = LLM

    def __init__(self, *args: Any, max_tokens: int = 1024, **served: Any) -> None:
        super().__init__(*args, **served, generates=True)
        self._max_tokens = max_tokens

    def prepare(self, call: GenerateCall) -> Prepared:
        """Build the request's body."""
        max_tokens = min(call.max_tokens, self._max_tokens)
        body = self.body(messages=call.messages, temperature=0, seed=call.seed, max_tokens=max_tokens)
        return Prepared(max_tokens, body | with_schema("response_format", call.schema))

    async def answer(self, prepared: Prepared, post: Post) -> Text:
        """Return the text.  Raises as `written`."""
        return Text(written(await post("chat/completions", prepared.data), prepared.cost))


def from_settings(settings: LlmSettings) -> OpenAiLLM:
    """Return the model of a table, without a request."""
    return OpenAiLLM(**served_arguments(settings), max_tokens=settings.max_tokens)
