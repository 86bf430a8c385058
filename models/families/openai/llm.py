"""
A question LLM behind an OpenAI-compatible HTTP API, such as vLLM's.

`response_format` constrains answers to a JSON schema.  (Newer vLLM servers ignore `guided_json` silently.)
"""

from collections.abc import Mapping
from typing import Any

from models.core.calls import GenerateCall
from models.core.contract import ModelInfo, Post, Prepared, RemoteModel
from models.core.outcomes import Text
from models.families.openai import LLM, LlmSettings
from models.families.openai.chat import written


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


def load(settings: LlmSettings) -> OpenAiLLM:
    """Return the model of a table, without a request."""
    return OpenAiLLM(
        settings.model,
        extra_body=settings.extra_body,
        max_tokens=settings.max_tokens,
        id=settings.id,
        revision=settings.revision,
    )
