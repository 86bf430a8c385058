"""The body of `POST /v1/chat/completions`: one picture and one text."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.core.errors import Invalid
from service.web.dialects.decisions.questions import MAX_PARTS, MAX_TEXT
from service.web.dialects.entries import Picture, is_picture, picture
from service.web.dialects.wire import Loose

MAX_MESSAGES = 16


class Message(Loose):
    """One message; only that of the user is read."""

    role: Literal["system", "developer", "user"]
    content: Any = None

    def parts(self) -> list[Any]:
        """Return the parts of the content; a str is a part of text."""
        return self.content if isinstance(self.content, list) else [self.content]


class ChatRequest(Loose):
    """
    The body.

    Attributes:
        model: a metric for one score, a VQA model for questions; None and `default` are the first.
        logprobs: the text is a question, whose answer has the log-probabilities of yes and no.
    """

    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]
    model: str | None = None
    logprobs: bool | None = None
    n: int | None = None
    stream: bool | None = None
    response_format: Any = None

    def judged(self) -> tuple[Picture, str]:
        """Return the picture and the text of the user's message.  Raises `Invalid` for any other request."""
        if self.stream:
            raise Invalid("/stream: an answer is not streamed here")
        if self.n not in (None, 1):
            raise Invalid("/n: there is one answer to each request")
        if isinstance(self.response_format, dict) and self.response_format.get("type") == "json_schema":
            raise Invalid("/response_format: the answer has a form of its own; no schema is read")
        asked = [(place, each) for place, each in enumerate(self.messages) if each.role == "user"]
        if len(asked) != 1:
            raise Invalid(f"/messages: has {len(asked)} messages of the user; one is needed")
        [(place, message)] = asked
        pointer = f"/messages/{place}/content"
        if len(message.parts()) > MAX_PARTS:
            raise Invalid(f"{pointer}: has {len(message.parts())} parts; at most {MAX_PARTS} are read")
        pictures = [each for each in message.parts() if is_picture(each)]
        if len(pictures) != 1:
            raise Invalid(f"{pointer}: has {len(pictures)} pictures; one is judged in a request")
        texts = self.texts(message, pointer)
        if sum(map(len, texts)) > MAX_TEXT:
            raise Invalid(f"{pointer}: the text has more than {MAX_TEXT} characters")
        return picture(pictures[0], pointer), "\n".join(texts).strip()

    @staticmethod
    def texts(message: Message, pointer: str) -> list[str]:
        """Return the texts of a message.  Raises `Invalid` for a part that is neither text nor picture."""
        texts = []
        for number, part in enumerate(message.parts()):
            if is_picture(part):
                continue
            said = part.get("text") if isinstance(part, dict) else part
            if not isinstance(said, str):
                raise Invalid(f"{pointer}/{number}: is neither a text nor a picture")
            texts.append(said)
        return texts
