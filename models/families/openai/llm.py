"""Chat requests to a server, and a question LLM behind it."""

from collections.abc import Mapping
from typing import Any

from models.core.calls import GenerateCall
from models.core.contract import ModelError, ModelInfo, Post, Prepared, RemoteModel, UpstreamError
from models.core.outcomes import Text
from models.families.openai import LLM, LlmSettings

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


class OpenAiLLM(RemoteModel):
    """
    A chat model of that API.

    Args:
        model: its name on the server.
        extra_body: fields added to every request.
        max_tokens: of an answer, at most.
        id, revision: label of the scores.
    """

    def __init__(
        self,
        model: str,
        *,
        extra_body: Mapping[str, Any],
        max_tokens: int = 1024,
        id: str = "",
        revision: str = "",
    ) -> None:
        self._model, self._extra, self._max_tokens = model, dict(extra_body), max_tokens
        self.info = ModelInfo(LLM.role, LLM.name, id or model, revision, "", "remote", generates=True)

    def prepare(self, call: GenerateCall) -> Prepared:
        """Build the request's body."""
        max_tokens = min(call.max_tokens, self._max_tokens)
        body = {
            **self._extra,
            "model": self._model,
            "messages": call.messages,
            "temperature": 0,
            "seed": call.seed,
            "max_tokens": max_tokens,
        }
        if call.schema is not None:
            schema = {"name": "answer", "strict": True, "schema": call.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return Prepared(max_tokens, body)

    async def answer(self, prepared: Prepared, post: Post) -> Text:
        """Return the text.  Raises as `written`."""
        return Text(written(await post("chat/completions", prepared.data), prepared.cost))


def from_settings(settings: LlmSettings) -> OpenAiLLM:
    """Return the model of a table, without a request."""
    return OpenAiLLM(
        settings.model,
        extra_body=settings.extra_body,
        max_tokens=settings.max_tokens,
        id=settings.id,
        revision=settings.revision,
    )
