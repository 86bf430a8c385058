"""
A decoder VLM behind vLLM's OpenAI-compatible API, in the role of a VQA model.

    P(label | image, question) = softmax of the first token's logits, at the label's token

The image stands before the text, so that all questions about it share its prefix in the server's
cache.  vLLM gives the log-probabilities of named tokens (`logprob_token_ids`); where a server has none
of that, its twenty likeliest tokens must hold every label, or there is no answer.
"""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import PIL.Image

from models.calls import LikelihoodCall
from models.contract import QUESTION, ModelError, ModelInfo, Post, Prepared, RemoteModel, UpstreamError
from models.openai import VLM, VlmSettings
from models.openai.chat import first_choice
from models.outcomes import Likelihood

MAX_TOP_LOGPROBS = 20  # that an OpenAI-compatible server gives
FLOOR = -9999.0  # what vLLM writes for minus infinity
IMAGE_COST = 1000  # tokens, for admission; the server knows better


@dataclass(frozen=True, slots=True)
class Asked:
    """One question about one image; `url` holds the image."""

    url: str
    question: str
    answer: str


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
        self._tokens: dict[str, int | None] = {}
        self.info = ModelInfo(VLM.role, VLM.name, id or model, revision, "", "remote", question=question)

    def prepare(self, call: LikelihoodCall) -> Prepared:
        """The image as a `data:` URI, made once for all its questions."""
        if not call.answer.strip():
            raise ModelError("the answer is empty")
        url = call.image.once(data_uri, data_uri)
        return Prepared(IMAGE_COST, Asked(url, call.question, call.answer))

    async def answer(self, prepared: Prepared, post: Post) -> Likelihood:
        """
        Log-probabilities of the answer's token, of "Yes" and of "No".

        Raises:
            ModelError: the answer asked for is not one token.
            UpstreamError: a label has no finite log-probability.
        """
        asked: Asked = prepared.data
        labels = dict.fromkeys((asked.answer, "Yes", "No"))
        tokens = {label: await self._token(label, post) for label in labels}
        said = logprobs(await post("chat/completions", self._body(asked, list(tokens.values()))))
        found = {label: pick(said, label, token) for label, token in tokens.items()}
        return Likelihood((found[asked.answer],), found["Yes"], found["No"])

    def _body(self, asked: Asked, tokens: list[int | None]) -> dict[str, Any]:
        image = {"type": "image_url", "image_url": {"url": asked.url}}
        text = {"type": "text", "text": asked.question}
        named = {"logprob_token_ids": tokens, "return_tokens_as_token_ids": True}
        return {
            **self._extra,
            "model": self._model,
            "messages": [{"role": "user", "content": [image, text]}],
            "temperature": 0,
            "max_tokens": 1,
            "logprobs": True,
            "top_logprobs": MAX_TOP_LOGPROBS,
            **(named if None not in tokens else {}),
        }

    async def _token(self, label: str, post: Post) -> int | None:
        """The label's token id; None where the server doesn't tell.  Asked once per label."""
        if label not in self._tokens:
            body = {"model": self._model, "prompt": label, "add_special_tokens": False}
            try:
                ids = (await post("../tokenize", body)).get("tokens")
            except UpstreamError as error:
                if error.status not in (404, 405):
                    raise
                self._tokens[label] = None
            else:
                if not isinstance(ids, list) or len(ids) != 1:
                    raise ModelError(
                        f"the answer has {len(ids or ())} tokens in this model; it must have one"
                    )
                self._tokens[label] = int(ids[0])
        return self._tokens[label]


def load(settings: VlmSettings) -> OpenAiVlm:
    """The model of a table; its server is not asked."""
    return OpenAiVlm(
        settings.model,
        question=settings.question,
        extra_body=settings.extra_body,
        id=settings.id,
        revision=settings.revision,
    )


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


def pick(said: Mapping[str, float], label: str, token: int | None) -> float:
    """The label's log-probability.  Raises `UpstreamError` where there is none."""
    found = said.get(f"token_id:{token}")
    if found is None:  # a server that names no tokens by id: its text, with or without a space before
        found = next((value for text, value in said.items() if text.strip() == label), None)
    if found is None:
        raise UpstreamError(f"returned no log-probability for {label!r}")
    if not isfinite(found) or found <= FLOOR:
        raise UpstreamError(f"returned a log-probability of {label!r} that is not finite")
    return found
