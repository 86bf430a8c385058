"""
A model that embeds images and texts into one space, behind an OpenAI-compatible API, as a CLIP.

vLLM embeds one chat a request, and a list of texts; Infinity and Jina have images in `input`, each in a form
of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.core.calls import ImageCall, TextCall
from models.core.contract import KnownCalls, Opposite, Post, Prepared, UpstreamError
from models.core.examples import IMAGE, OTHER_IMAGE
from models.core.outcomes import Embedding
from models.families.openai import CLIP, EmbedderSettings, EmbeddingsBody, ServedModel, served_arguments
from models.families.openai.embedding import embeddings_of
from models.families.openai.vlm import IMAGE_COST_TOKENS, data_uri, part
from models.images.image import Image

MAX_REQUEST_TEXTS = 64
# Numbers of two embeddings of length 1 that differ by no more are equal.
MIN_NUMBER_DIFFERENCE = MAX_NUMBER_DRIFT = 1e-3
SAME_IMAGES = (
    "gives a red and a blue picture the same embedding; a vLLM does that where it drops pictures, "
    "or with a chat template without a place for them"
)


def chat(shown: str | Image) -> dict[str, Any]:
    """Return a request's field with one image or text as a chat."""
    return {"messages": [{"role": "user", "content": [part(shown)]}]}


@dataclass(frozen=True, slots=True)
class EmbeddingsForm:
    """
    A form of requests.

    Attributes:
        image: fields of the request for one image.
        texts: fields of the request for a list of texts.
    """

    image: Callable[[Image], Mapping[str, Any]]
    texts: Callable[[Sequence[str]], Mapping[str, Any]]


def uri(image: Image) -> str:
    """Return the image as a `data:` URI."""
    encoded: str = image.once(data_uri, data_uri)
    return encoded


FORMS: dict[EmbeddingsBody, EmbeddingsForm] = {
    "messages": EmbeddingsForm(chat, lambda texts: {"input": [*texts]}),
    "infinity": EmbeddingsForm(
        lambda image: {"input": [uri(image)], "modality": "image"},
        lambda texts: {"input": [*texts], "modality": "text"},
    ),
    "jina": EmbeddingsForm(
        lambda image: {"input": [{"image": uri(image).partition(",")[2]}]},
        lambda texts: {"input": [{"text": text} for text in texts]},
    ),
}


class OpenAiClip(ServedModel):
    """
    An embedder of images and texts.  Args as in `ServedModel`.

    Args:
        body: form of the requests.
        texts_as_chats: a text is embedded as a chat, with the model's template, and alone in its request.
        instruction: the first message of each chat; empty for none.
    """

    family = CLIP
    most_together = MAX_REQUEST_TEXTS

    def __init__(
        self,
        *args: Any,
        body: EmbeddingsBody = "messages",
        texts_as_chats: bool = False,
        instruction: str = "",
        **served: Any,
    ) -> None:
        super().__init__(*args, **served)
        self._form, self._chats = FORMS[body], texts_as_chats
        self._first = [{"role": "system", "content": [part(instruction)]}] if instruction else []
        self._width = 0  # 0 before the first embedding

    def prepare(self, call: ImageCall | TextCall) -> Prepared:
        """Build an image's fields; the cost of a text is its number of characters."""
        if isinstance(call, ImageCall):
            return Prepared(IMAGE_COST_TOKENS, self._instructed(self._form.image(call.image)))
        return Prepared(len(call.text), self._instructed(chat(call.text)) if self._chats else call.text)

    def _instructed(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request's fields with the instruction before the messages of a chat."""
        return {"messages": [*self._first, *fields["messages"]]} if self._first else fields

    def known_calls(self) -> KnownCalls:
        """Return two pictures, one red and one blue."""
        other = Opposite(ImageCall(OTHER_IMAGE), SAME_IMAGES, MIN_NUMBER_DIFFERENCE)
        return KnownCalls(
            ImageCall(IMAGE), (other,), "embeddings of a red and a blue picture", drift=MAX_NUMBER_DRIFT
        )

    def together(self, prepared: Prepared) -> str:
        """Return one key for all texts of a list; images have requests of their own."""
        return "texts" if isinstance(prepared.data, str) else ""

    async def answer(self, prepared: Prepared, post: Post) -> Embedding:
        """Return the embedding at length 1.  Raises `UpstreamError`."""
        [embedding] = await self.answer_all([prepared], post)
        return embedding

    async def answer_all(self, prepared: Sequence[Prepared], post: Post) -> list[Embedding]:
        """
        Return the embeddings of one image, or of texts, with one request.

        Raises:
            UpstreamError: it has another number of embeddings, one that is no vector with a direction, or of
                another width than those before.
        """
        first = prepared[0].data
        fields = self._form.texts([each.data for each in prepared]) if isinstance(first, str) else first
        found = embeddings_of(
            await post("embeddings", self.body(**fields, encoding_format="float")), len(prepared)
        )
        for embedding in found:
            width = len(embedding.vector)
            self._width = self._width or width
            if width != self._width:
                raise UpstreamError(f"returned an embedding of {width} numbers after one of {self._width}")
        return found


def from_settings(settings: EmbedderSettings) -> OpenAiClip:
    """Return the model of a table, without a request."""
    return OpenAiClip(
        **served_arguments(settings),
        body=settings.body,
        texts_as_chats=settings.texts_as_chats,
        instruction=settings.instruction,
    )
