"""
A decoder VLM behind vLLM's OpenAI-compatible API, in the role of a VQA model.

    P(label | image, question) = softmax of the first token's logits, at the label's token

The image is before the text, so that all questions about it share a prefix in the server's cache.  Other
images of a call, with their texts, are before both.

vLLM returns the log-probabilities of requested tokens (`logprob_token_ids`); of a server without that, the
twenty likeliest tokens must include every label.

An answer must be one token.  An `AnswerCall` is answered by the text that the model writes, without a
likelihood.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import PIL.Image

from models.core.calls import AnswerCall, LabelCall
from models.core.contract import QUESTION, KnownCalls, ModelError, Post, Prepared, UpstreamError
from models.core.examples import opposite_questions
from models.core.outcomes import CallResult, Text
from models.families.openai import (
    VLM,
    ServedModel,
    Structured,
    VlmSettings,
    served_arguments,
    with_schema,
)
from models.families.openai.llm import first_choice, written
from models.families.vlm_answers import Answers, VlmCall, answers_of, visible
from models.images.image import Image

CACHED_TEXTS = 10_000  # texts in the cache


@dataclass(frozen=True, slots=True)
class TextTokens:
    """A text's token ids, and the first of them that is more than a space; None if all are spaces."""

    ids: tuple[int, ...]
    first: int | None


class ServerTokens:
    """
    A cache of texts' tokens, with one request for each text.

    Args:
        model: its name on the server.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._known: dict[str, TextTokens | None] = {}

    async def of(self, label: str, whole: bool, post: Post) -> int | None:
        """
        Return the token that represents *label*; None if the server cannot tokenise, so that its text is
        used.

        Raises:
            ModelError: *label* must be one token *whole*, and is not.
            UpstreamError: the server cannot tokenise, and the first token is needed.
        """
        if label not in self._known:
            tokens = await self._request(label, post)
            if len(self._known) >= CACHED_TEXTS:
                self._known.clear()
            self._known[label] = tokens
        else:
            tokens = self._known[label]
        if tokens is None:
            if not whole:
                raise UpstreamError("has no /tokenize, so that it cannot be known how an answer begins")
            return None
        if len(tokens.ids) != 1 if whole else tokens.first is None:
            raise ModelError(f"the answer has {len(tokens.ids)} tokens in this model; it must have one")
        return tokens.ids[0] if whole else tokens.first

    async def _request(self, label: str, post: Post) -> TextTokens | None:
        """Request the tokens of *label*; None if the server has no such route."""
        body = {"model": self._model, "prompt": label, "add_special_tokens": False, "return_token_strs": True}
        try:
            answer = await post("../tokenize", body)
        except UpstreamError as error:
            if error.status not in (404, 405):
                raise
            return None
        ids, texts = answer.get("tokens"), answer.get("token_strs")
        if not isinstance(ids, list) or any(type(id) is not int for id in ids):
            raise UpstreamError("returned no tokens")
        if not isinstance(texts, list) or len(texts) != len(ids):
            texts = ids  # an older server without texts: no token counts as a space
        return TextTokens(tuple(ids), visible(ids, texts))


MAX_TOP_LOGPROBS = 20  # limit of an OpenAI-compatible server
MINUS_INFINITY = -9999.0  # vLLM's value for minus infinity
IMAGE_COST_TOKENS = 1000  # tokens, for admission only


@dataclass(frozen=True, slots=True)
class Message:
    """
    One message: its *parts* are texts and images in the API's format, with the question last.

    Attributes:
        answers: whose likelihoods are needed; None if the model writes one.
        fields: of the request for a written answer.
    """

    parts: Sequence[dict[str, Any]]
    answers: Answers | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


class OpenAiVlm(ServedModel):
    """
    A vision-language model of that API.  Args as in `ServedModel`.

    An answer must be one token of the model ("Yes" is); its likelihood is the probability of that token,
    without an end-of-sequence token.

    Args:
        question: template of the question whether a picture shows a text; `{}` is the text.
        structured_output: the field of a request that takes a JSON schema.
    """

    family = VLM

    def __init__(
        self,
        model: str,
        *,
        question: str = QUESTION,
        structured_output: Structured = "response_format",
        **served: Any,
    ) -> None:
        # The letters of choices come with a sentence of their own.
        super().__init__(model, **served, question=question, choice_question="{}")
        self._tokens, self._structured = ServerTokens(model), structured_output

    def prepare(self, call: VlmCall | AnswerCall) -> Prepared:
        """Build the message; each image is encoded once for all its questions.  Raises `ModelError`."""
        before = call.before if isinstance(call, LabelCall | AnswerCall) else ()
        answers = None if isinstance(call, AnswerCall) else answers_of(call)
        question = answers.question if answers else call.question
        parts = [part(each) for each in (*before, call.image, question)]
        cost = IMAGE_COST_TOKENS * sum(each["type"] == "image_url" for each in parts)
        return Prepared(cost, Message(parts, answers, self._written(call)))

    def _written(self, call: VlmCall | AnswerCall) -> dict[str, Any]:
        """Return the fields of a request for a written answer; none for another call."""
        if not isinstance(call, AnswerCall):
            return {}
        seed = {"seed": call.seed} if call.seed or call.temperature else {}
        how = {"max_tokens": call.max_tokens, "temperature": call.temperature, **seed}
        return how | with_schema(self._structured, call.schema)

    def known_calls(self) -> KnownCalls:
        """Return the questions whether a red picture is red, and whether it is blue."""
        return KnownCalls.of(
            *opposite_questions(self.info.question),
            compared="log-probabilities of named tokens for opposite questions about a picture",
        )

    async def answer(self, prepared: Prepared, post: Post) -> CallResult:
        """
        Return the result from the log-probabilities of the labels, or the text, with one request.

        Raises:
            ModelError: an answer that must be one token is not.
            UpstreamError: a label has no finite log-probability, its token is unknown, or a text is too long.
        """
        message: Message = prepared.data
        if message.answers is None:
            body = {**self._message(message), **message.fields}
            return Text(written(await post("chat/completions", body), message.fields["max_tokens"]))
        labels, whole = message.answers.labels, message.answers.whole
        tokens = [await self._tokens.of(label, whole, post) for label in labels]
        found = logprobs(await post("chat/completions", self._body(message, tokens)))
        picked = [[pick(found, label, token, whole)] for label, token in zip(labels, tokens, strict=True)]
        ids = [None if token is None else (token,) for token in tokens]
        message.answers.check(ids)
        return message.answers.outcome(picked, ids)

    def _message(self, message: Message) -> dict[str, Any]:
        return self.body(messages=[{"role": "user", "content": [*message.parts]}], temperature=0)

    def _body(self, message: Message, tokens: Sequence[int | None]) -> dict[str, Any]:
        named = {"logprob_token_ids": [*dict.fromkeys(tokens)], "return_tokens_as_token_ids": True}
        return {
            **self._message(message),
            "max_tokens": 1,
            "logprobs": True,
            "top_logprobs": MAX_TOP_LOGPROBS,
            **(named if None not in tokens else {}),
        }


def from_settings(settings: VlmSettings) -> OpenAiVlm:
    """Return the model of a table, without a request."""
    return OpenAiVlm(
        **served_arguments(settings),
        question=settings.question,
        structured_output=settings.structured_output,
    )


def part(shown: str | Image) -> dict[str, Any]:
    """Convert a text or an image to a part of a message."""
    if isinstance(shown, str):
        return {"type": "text", "text": shown}
    return {"type": "image_url", "image_url": {"url": shown.once(data_uri, data_uri)}}


def data_uri(rgb: PIL.Image.Image) -> str:
    """Encode the pixels losslessly."""
    buffer = io.BytesIO()
    rgb.save(buffer, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def logprobs(answer: Mapping[str, Any]) -> dict[str, float]:
    """Return log-probabilities of the first token's candidates by the server's names, likeliest first."""
    try:
        entries = first_choice(answer)["logprobs"]["content"][0]["top_logprobs"]
        said = {str(entry["token"]): float(entry["logprob"]) for entry in reversed(entries)}
    except (KeyError, IndexError, TypeError, ValueError) as exc:
        raise UpstreamError("returned no log-probabilities") from exc
    return dict(sorted(said.items(), key=lambda entry: -entry[1]))


def pick(said: Mapping[str, float], label: str, token: int | None, by_text: bool) -> float:
    """
    Return the label's log-probability.

    Args:
        by_text: find the token by its text, with or without a space before, if the server returns no ids.

    Raises:
        UpstreamError: it is missing or not finite.
    """
    found = said.get(f"token_id:{token}")
    if found is None and by_text:
        found = next((value for text, value in said.items() if text.strip() == label), None)
    if found is None:
        raise UpstreamError(f"returned no log-probability for {label!r}")
    if not isfinite(found) or found <= MINUS_INFINITY:
        raise UpstreamError(f"returned a log-probability of {label!r} that is not finite")
    return found
