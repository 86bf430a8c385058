"""
Everything that can go wrong, as one tree that mirrors the service's codes.

The service's `docs/errors.md` says when each happens.  A whole request fails with one of these, and so does
one metric of one item.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any


class ScoregateError(Exception):
    """
    Base of the tree; as itself, a fault of the service or an answer that nobody expects.

    Attributes:
        code: the service's code, or one of the client's own.
        detail: one sentence for people.
        status: the HTTP status; 0 where there was no answer, or where the error is one metric's of one item.
        request_id: names the request in the service's log; empty where it never arrived.
        errors: the wrong places of a request, each with `pointer`, `code` and `detail`.
        retry_after_s: seconds after which the service expects to take such a request.
    """

    code = "internal"

    def __init__(
        self,
        detail: str = "",
        *,
        code: str = "",
        status: int = 0,
        request_id: str = "",
        errors: Sequence[Mapping[str, Any]] = (),
        retry_after_s: float | None = None,
    ) -> None:
        self.code = code or type(self).code
        self.detail = detail or self.code
        self.status = status
        self.request_id = request_id
        self.errors = tuple(errors)
        self.retry_after_s = retry_after_s
        super().__init__(self.detail)

    def __reduce__(self) -> tuple[Any, ...]:
        """As it travels between processes."""
        return remade, (type(self), self.__dict__)

    def at(self, place: str) -> ScoregateError:
        """The same error, whose detail begins with *place*."""
        return remade(type(self), {**self.__dict__, "detail": f"{place}: {self.detail}"})


def remade(kind: type[ScoregateError], state: Mapping[str, Any]) -> ScoregateError:
    """An error that says *state*."""
    error = kind(state["detail"])
    error.__dict__.update(state)
    return error


# --- what the client finds by itself ------------------------------------------------------------


class ConnectionFailed(ScoregateError):
    """The service could not be reached, or broke the connection; a proxy's page has its `status`."""

    code = "connection_failed"


class Timeout(ScoregateError):
    """The call's time ran out before an answer came."""

    code = "timeout"


class Warned(ScoregateError):
    """The service warned about a score, and the client is strict."""

    code = "warned"


class ModelChanged(ScoregateError):
    """Other models answer than those that scored the items before."""

    code = "model_changed"


class BadResults(ScoregateError, ValueError):
    """A file of results is of another run, or holds what no run writes."""

    code = "bad_results"


# --- what the service says ----------------------------------------------------------------------


class Malformed(ScoregateError):
    """The body cannot be read at all."""

    code = "malformed"


class Unauthorized(ScoregateError):
    """The service wants a key, and this is none."""

    code = "unauthorized"


class Forbidden(ScoregateError):
    """The key may not do this."""

    code = "forbidden"


class NotFound(ScoregateError):
    """No such path."""

    code = "not_found"


class UnknownQuestionSet(NotFound):
    """No question set is stored under that id."""

    code = "unknown_question_set"


class MethodNotAllowed(ScoregateError):
    """The path exists, the method doesn't."""

    code = "method_not_allowed"


class RequestTimeout(ScoregateError):
    """The request came too slowly."""

    code = "request_timeout"


class TooLarge(ScoregateError):
    """The request is over a limit, and will never fit."""

    code = "too_large"


class LargerThanQuota(TooLarge):
    """More pairs of an item and a metric than the key's quota ever holds."""

    code = "larger_than_quota"


class UnsupportedMediaType(ScoregateError):
    """Neither JSON nor multipart."""

    code = "unsupported_media_type"


class Invalid(ScoregateError):
    """The request says something that is not allowed."""

    code = "invalid"


class UnknownMetric(Invalid):
    """A metric that the service does not serve."""

    code = "unknown_metric"


class ImageFailed(Invalid):
    """A picture of a ranking has no score, and `on_error` is `raise`."""

    code = "image_failed"


class BadImage(Invalid):
    """An image cannot be used; the client raises it for one that it cannot encode."""

    code = "bad_image"


class NotBase64(BadImage):
    """The image's text is not base64."""

    code = "not_base64"


class ImageUndecodable(BadImage):
    """The bytes are empty, no image, or a broken one."""

    code = "image_undecodable"


class ImageTooLarge(BadImage):
    """More pixels or bytes than the service takes."""

    code = "image_too_large"


class UrlNotAllowed(BadImage):
    """An image by URL where the operator, or this client, allows none."""

    code = "url_not_allowed"


class UrlFailed(BadImage):
    """The service could not fetch the image."""

    code = "url_failed"


class NoQuestions(Invalid):
    """Nothing was found to ask about a prompt."""

    code = "no_questions"


class Unanswered(Invalid):
    """The questions were asked, and none of the answers says anything."""

    code = "unanswered"


class NoText(Invalid):
    """Nothing says which text an image should show."""

    code = "no_text"


class NoTask(Invalid):
    """Nothing says which objects an image should show."""

    code = "no_task"


class UnknownClass(Invalid):
    """An object of a class that the detector does not know."""

    code = "unknown_class"


class NoMasks(Invalid):
    """Colours are asked for, and the detector does not say which pixels belong to an object."""

    code = "no_masks"


class MissingPicture(Invalid):
    """A metric looks at references or a source, and the item has none."""

    code = "missing_picture"


class CallRefused(Invalid):
    """A model cannot take this call, whatever its load."""

    code = "call_refused"


class LaneFull(ScoregateError):
    """The interactive lane is full, or would not be served in time."""

    code = "lane_full"


class QuotaExceeded(ScoregateError):
    """The key has used up its quota of this minute."""

    code = "quota_exceeded"


class MemoryFull(ScoregateError):
    """Requests hold as many bytes as they may together."""

    code = "memory_full"


class Overloaded(ScoregateError):
    """The bulk lane is full."""

    code = "overloaded"


class ModelFault(ScoregateError):
    """A model broke its contract."""

    code = "model_fault"


class UpstreamFailed(ScoregateError):
    """A model that another process serves did not answer, or badly."""

    code = "upstream_failed"


class QuestionLLMFailed(ScoregateError):
    """The question LLM answered badly or not at all."""

    code = "question_llm_failed"


class NotReady(ScoregateError):
    """A model that is needed is not serving."""

    code = "not_ready"


class Replaced(NotReady):
    """The model was replaced before it answered."""

    code = "model_replaced"


class Draining(NotReady):
    """The service is shutting down."""

    code = "draining"


class DeadlineExceeded(ScoregateError):
    """The request's time ran out before this was scored."""

    code = "deadline_exceeded"


def tree(root: type[ScoregateError] = ScoregateError) -> list[type[ScoregateError]]:
    """*root* and everything below it."""
    return [root, *(kind for child in root.__subclasses__() for kind in tree(child))]


OWN = (ConnectionFailed, Timeout, Warned, ModelChanged, BadResults)
KINDS = {kind.code: kind for kind in tree()}


def error_of(entry: Mapping[str, Any], *, status: int = 0, request_id: str = "") -> ScoregateError:
    """The error of a problem or of one metric; a code of a newer service is kept in the base class."""
    code = str(entry.get("code", ""))
    return KINDS.get(code, ScoregateError)(
        str(entry.get("detail", "")),
        code=code,
        status=status,
        request_id=request_id or str(entry.get("request_id", "")),
        errors=faults_of(entry.get("errors")),
        retry_after_s=seconds_of(entry.get("retry_after_s")),
    )


def faults_of(told: Any) -> list[Mapping[str, Any]]:
    """The wrong places of a request, each with the texts that it must have; what is none is left out."""
    places = told if isinstance(told, list) else []
    return [
        {**fault, **{name: str(fault.get(name, "")) for name in ("pointer", "code", "detail")}}
        for fault in places
        if isinstance(fault, Mapping)
    ]


def seconds_of(told: Any) -> float | None:
    """A number of seconds; None for what cannot be one."""
    is_one = isinstance(told, (int, float)) and 0 <= told <= sys.float_info.max
    return float(told) if is_one else None
