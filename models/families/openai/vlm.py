"""
A decoder VLM behind vLLM's OpenAI-compatible API, in the role of a VQA model.

    P(label | image, question) = softmax of the first token's logits, at the label's token

The image stands before the text, so that all questions about it share its prefix in the server's
cache.  Other images of a call, with the texts that introduce them, stand before both.

vLLM gives the log-probabilities of named tokens (`logprob_token_ids`); where a server has none of that,
its twenty likeliest tokens must hold every label, or there is no answer.

Choices stand below the question as "A. red", and their labels are the letters.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import PIL.Image

from models.core.calls import LabelCall, LikelihoodCall
from models.core.contract import QUESTION, ModelInfo, Post, Prepared, RemoteModel, UpstreamError
from models.core.known import PICTURE, TEXTS
from models.core.outcomes import CallResult
from models.families.openai import VLM, VlmSettings
from models.families.openai.answers import Answers, VlmCall, answers_of
from models.families.openai.chat import first_choice
from models.families.openai.tokens import ServerTokens
from models.images.image import Image

MAX_TOP_LOGPROBS = 20  # that an OpenAI-compatible server gives
FLOOR = -9999.0  # what vLLM writes for minus infinity
IMAGE_COST = 1000  # tokens, for admission; the server knows better


@dataclass(frozen=True, slots=True)
class AnswerQuery:
    """One message: its *parts* are texts and images, as the API writes them, with the question last."""

    parts: Sequence[dict[str, Any]]
    answers: Answers


class OpenAiVlm(RemoteModel):
    """
    A vision-language model of that API.

    The answer asked for must be one token of the model's ("Yes" is); its likelihood is that token's
    probability alone, without an end-of-sequence token.

    Args:
        model: the name that the server knows it by.
        question: how it is best asked whether it sees a text; `{}` is the text.
        extra_body: fields added to every request.
        id, revision: what scores are labelled with.
    """

    def __init__(
        self,
        model: str,
        *,
        question: str = QUESTION,
        extra_body: Mapping[str, Any],
        id: str = "",
        revision: str = "",
    ) -> None:
        self._model, self._extra = model, dict(extra_body)
        self._tokens = ServerTokens(model)
        self.info = ModelInfo(
            VLM.role,
            VLM.name,
            id or model,
            revision,
            "",
            "remote",
            question=question,
            choice_question="{}",  # the letters come with a sentence of their own
        )

    def prepare(self, call: VlmCall) -> Prepared:
        """Each image as a `data:` URI, made once for all its questions.  Raises `ModelError`."""
        answers = answers_of(call)
        before = call.before if isinstance(call, LabelCall) else ()
        parts = [part(each) for each in (*before, call.image, answers.question)]
        images = sum(each["type"] == "image_url" for each in parts)
        return Prepared(IMAGE_COST * images, AnswerQuery(parts, answers))

    def opposites(self) -> tuple[LikelihoodCall, ...]:
        """Whether a red picture is red, and whether it is blue, in the model's own words."""
        return tuple(LikelihoodCall(PICTURE, self.info.question.replace("{}", text)) for text in TEXTS)

    async def answer(self, prepared: Prepared, post: Post) -> CallResult:
        """
        What the log-probabilities of the labels say, all from one request.

        Raises:
            ModelError: an answer that must be one token is not.
            UpstreamError: a label has no finite log-probability, or the server doesn't tell its token.
        """
        asked: AnswerQuery = prepared.data
        labels, whole = asked.answers.labels, asked.answers.whole
        tokens = [await self._tokens.of(label, whole, post) for label in labels]
        said = logprobs(await post("chat/completions", self._body(asked, tokens)))
        found = [pick(said, label, token, whole) for label, token in zip(labels, tokens, strict=True)]
        return asked.answers.outcome(found, tokens)

    def _body(self, asked: AnswerQuery, tokens: Sequence[int | None]) -> dict[str, Any]:
        named = {"logprob_token_ids": [*dict.fromkeys(tokens)], "return_tokens_as_token_ids": True}
        return {
            **self._extra,
            "model": self._model,
            "messages": [{"role": "user", "content": [*asked.parts]}],
            "temperature": 0,
            "max_tokens": 1,
            "logprobs": True,
            "top_logprobs": MAX_TOP_LOGPROBS,
            **(named if None not in tokens else {}),
        }


def load(settings: VlmSettings) -> OpenAiVlm:
    """The model of a table; its server is not asked."""
    return OpenAiVlm(
        settings.model,
        question=settings.question,
        extra_body=settings.extra_body,
        id=settings.id,
        revision=settings.revision,
    )


def part(shown: str | Image) -> dict[str, Any]:
    """A text or an image as a part of a message."""
    if isinstance(shown, str):
        return {"type": "text", "text": shown}
    return {"type": "image_url", "image_url": {"url": shown.once(data_uri, data_uri)}}


def data_uri(rgb: PIL.Image.Image) -> str:
    """The pixels, lossless."""
    buffer = io.BytesIO()
    rgb.save(buffer, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def logprobs(answer: Mapping[str, Any]) -> dict[str, float]:
    """Log-probabilities of the first token's candidates, by what the server calls them, likeliest first."""
    try:
        entries = first_choice(answer)["logprobs"]["content"][0]["top_logprobs"]
        said = {str(entry["token"]): float(entry["logprob"]) for entry in reversed(entries)}
    except (KeyError, IndexError, TypeError, ValueError) as exc:
        raise UpstreamError("returned no log-probabilities") from exc
    return dict(sorted(said.items(), key=lambda entry: -entry[1]))


def pick(said: Mapping[str, float], label: str, token: int | None, by_text: bool) -> float:
    """
    The label's log-probability.

    Args:
        by_text: whether a token may be told by its text, with or without a space before, where the server
            names none by id.

    Raises:
        UpstreamError: there is none, or it is not finite.
    """
    found = said.get(f"token_id:{token}")
    if found is None and by_text:
        found = next((value for text, value in said.items() if text.strip() == label), None)
    if found is None:
        raise UpstreamError(f"returned no log-probability for {label!r}")
    if not isfinite(found) or found <= FLOOR:
        raise UpstreamError(f"returned a log-probability of {label!r} that is not finite")
    return found
