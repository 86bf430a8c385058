"""
Everything that can go wrong, as one tree of classes.  Each carries its HTTP status and a stable code.

Raise the most specific class.  Only an error of a whole request becomes the response's status; the
error of an item or metric stands in a response with status 200.  `docs/errors.md` says what a caller does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Self

MAX_NAME = 64  # characters of an unknown name that are compared with the valid ones


@dataclass(frozen=True, slots=True)
class Fault:
    """
    A faulty place of a request: a JSON pointer, a code and a sentence.

    Attributes:
        valid: the names that could stand there, if the fault is an unknown name or value.
        did_you_mean: the one of them that is most like it; empty if none is.
    """

    pointer: str
    code: str
    detail: str
    valid: Sequence[str] = ()
    did_you_mean: str = ""

    @classmethod
    def unknown(cls, pointer: str, code: str, detail: str, name: str, valid: Sequence[str]) -> Self:
        """Return the fault of the unknown *name*, with the *valid* one that is most like it in any case."""
        folded = {each.casefold(): each for each in valid}
        close = next((folded[each] for each in get_close_matches(name[:MAX_NAME].casefold(), folded, 1)), "")
        hint = f"; did you mean {close}?" if close else ""
        return cls(pointer, code, f"{detail}{hint}", valid, close)


class ScoregateError(Exception):
    """Base of all errors; raised by itself, it is an internal error of the service."""

    status = 500
    code = "internal"
    title = "Internal error"
    detail = "internal error; the log of the service has more under this request id"
    exact_wait = False  # True if `retry_after_s` is exact and specific to the caller

    def __init__(
        self,
        detail: str = "",
        *,
        faults: Sequence[Fault] = (),
        retry_after_s: float | None = None,
    ) -> None:
        self.detail = detail or type(self).detail
        self.faults = tuple(faults)
        self.retry_after_s = retry_after_s or None  # 0 means that waiting does not help
        super().__init__(self.detail)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the class and its state, since subclasses have other constructors."""
        return remade, (type(self), self.__dict__)

    def of_part(self, name: str) -> Self:
        """Return a copy whose detail names the part of a composite that failed."""
        error = type(self).__new__(type(self))
        error.__dict__ |= self.__dict__
        error.detail = f"{name}: {self.detail}"
        error.args = (error.detail,)
        return error


def remade(kind: type[ScoregateError], state: Mapping[str, Any]) -> ScoregateError:
    """Return the error that `__reduce__` pickled."""
    error = kind.__new__(kind, state["detail"])
    error.__dict__ |= state
    return error


def bare(error: ScoregateError) -> ScoregateError:
    """Return the error without its traceback, whose frames would keep pictures in memory."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


class Malformed(ScoregateError):
    """The body cannot be parsed."""

    status, code, title = 400, "malformed", "Malformed request"


class Unauthorized(ScoregateError):
    """Keys are configured, and the request has no valid one."""

    status, code, title = 401, "unauthorized", "Key missing or unknown"
    detail = "no valid key; send 'Authorization: Bearer KEY' or 'X-API-Key: KEY'"


class Forbidden(ScoregateError):
    """The key is valid but does not allow this."""

    status, code, title = 403, "forbidden", "Forbidden"


class NotFound(ScoregateError):
    """The path does not exist."""

    status, code, title = 404, "not_found", "Not found"
    detail = "there is no such path; GET /openapi.json lists all paths"


class UnknownQuestionSet(NotFound):
    """No question set is stored under that id."""

    code, title = "unknown_question_set", "Unknown question set"


class MethodNotAllowed(ScoregateError):
    """The path exists but does not allow the method."""

    status, code, title = 405, "method_not_allowed", "Method not allowed"
    detail = "this path does not allow that method; the header Allow lists those that it does"


class RequestTimeout(ScoregateError):
    """Headers or body arrived too slowly, or stopped arriving."""

    status, code, title = 408, "request_timeout", "Request too slow"


class Conflict(ScoregateError):
    """Another change of the same model is under way, or its state does not allow this one."""

    status, code, title = 409, "conflict", "Conflict"


class TooLarge(ScoregateError):
    """The body, or its work for a model, is over the limit.  It has no Retry-After, since it never fits."""

    status, code, title = 413, "too_large", "Request too large"


class LargerThanQuota(TooLarge):
    """The request has more pairs of item and metric than the key's quota ever holds."""

    code, title = "larger_than_quota", "Larger than the key's quota"


class UnsupportedMediaType(ScoregateError):
    """The body is neither JSON nor multipart."""

    status, code, title = 415, "unsupported_media_type", "Unsupported media type"
    detail = "send application/json or multipart/form-data"


class Invalid(ScoregateError):
    """The body was parsed, but its content is not valid."""

    status, code, title = 422, "invalid", "Invalid request"


class UnknownMetric(Invalid):
    """This server does not serve the metric."""

    code, title = "unknown_metric", "Unknown metric"


class UnknownPolicy(Invalid):
    """The settings of this server have no policy of that name."""

    code, title = "unknown_policy", "Unknown policy"


class ImageFailed(Invalid):
    """An image of a ranking has no score, and the request is to be refused in that case."""

    code, title = "image_failed", "Image without a score"


class BadImage(Invalid):
    """The item's image is not valid."""

    code, title = "bad_image", "Bad image"


class NotBase64(BadImage):
    """The image's text is not base64."""

    code, title = "not_base64", "Not base64"


class ImageUndecodable(BadImage):
    """The bytes are empty, no image, or a broken one."""

    code, title = "image_undecodable", "Image cannot be decoded"


class ImageTooLarge(BadImage):
    """The image has more pixels or bytes than the limit, according to its header."""

    code, title = "image_too_large", "Image too large"


class NoFrames(BadImage):
    """No frame of the item's video is between `start` and `end`."""

    code, title = "no_frames", "No frames"


class UrlNotAllowed(BadImage):
    """The operator does not allow this image URL."""

    code, title = "url_not_allowed", "URLs are not allowed"


class UrlFailed(BadImage):
    """The image could not be fetched."""

    code, title = "url_failed", "URL could not be fetched"


class NoQuestions(Invalid):
    """The prompt led to no questions, so there is nothing to score."""

    code, title = "no_questions", "No questions"


class Unanswered(Invalid):
    """None of the answers to a prompt's questions is usable."""

    code, title = "unanswered", "No answer"


class NoText(Invalid):
    """The item does not say which text its image should show."""

    code, title = "no_text", "No text asked for"


class NoTask(Invalid):
    """The item does not say which objects its image should show."""

    code, title = "no_task", "No objects asked for"


class UnknownClass(Invalid):
    """The detector does not support a class of objects."""

    code, title = "unknown_class", "Unknown class of objects"


class NoMasks(Invalid):
    """The item requires colours, and the detector does not return masks of objects."""

    code, title = "no_masks", "Detector without masks"


class MissingImage(Invalid):
    """The metric needs reference or source images, and the item has none."""

    code, title = "missing_picture", "Missing picture"


class CallRefused(Invalid):
    """A model cannot process this call, whatever its load."""

    code, title = "call_refused", "Call refused by the model"


class LaneFull(ScoregateError):
    """The interactive lane is full, or would not be served before the deadline."""

    status, code, title = 429, "lane_full", "Lane full"


class QuotaExceeded(ScoregateError):
    """The key's quota is used up for now; the wait is exact."""

    status, code, title = 429, "quota_exceeded", "Quota exceeded"
    exact_wait = True


class MemoryFull(ScoregateError):
    """The bodies and images of all requests have reached their memory limit."""

    status, code, title = 429, "memory_full", "Memory full"


class Overloaded(ScoregateError):
    """The bulk lane is full."""

    status, code, title = 503, "overloaded", "Overloaded"


class ModelFault(ScoregateError):
    """A model broke its contract: wrong length, an exception, a number that is not finite."""

    status, code, title = 500, "model_fault", "Model fault"


class UpstreamFailed(ScoregateError):
    """A model in another process failed or returned an invalid response."""

    status, code, title = 502, "upstream_failed", "Upstream failed"


class Misread(StrEnum):
    """Why a written answer was refused, as `scoregate_refused_answers_total` counts it."""

    NOT_JSON = "not_json"
    SEVERAL_OBJECTS = "several_objects"
    TRAILING_TEXT = "trailing_text"
    MISSING_MARK = "missing_mark"
    REPEATED_MARK = "repeated_mark"
    MISSING_OUTPUT = "missing_output"
    UNKNOWN_OUTPUT = "unknown_output"
    REPEATED_OUTPUT = "repeated_output"
    NOT_A_NUMBER = "not_a_number"
    OUT_OF_RANGE = "out_of_range"
    NOT_A_LABEL = "not_a_label"


class AnswerRefused(UpstreamFailed):
    """The text that a model wrote does not have the form of its rubric."""

    code, title = "answer_refused", "Answer refused"

    def __init__(self, detail: str = "", reason: Misread = Misread.NOT_JSON) -> None:
        self.reason = reason
        super().__init__(detail)


class QuestionLLMFailed(ScoregateError):
    """The question LLM failed or returned an invalid response."""

    status, code, title = 502, "question_llm_failed", "Question LLM failed"


class NotReady(ScoregateError):
    """A required model is not serving, or the store of question sets failed."""

    status, code, title = 503, "not_ready", "Not ready"


class ModelChanged(NotReady):
    """A model has another identity than when the request first used it, also after one repetition."""

    code, title = "model_changed", "Model changed"
    detail = "the model was replaced by another one meanwhile"


class Draining(NotReady):
    """The service is shutting down and accepts no new requests."""

    code, title = "draining", "Shutting down"
    detail = "the service is shutting down"


REFUSALS = (LaneFull, MemoryFull, Overloaded, NotReady)  # these requests are valid, and may be accepted later


class DeadlineExceeded(ScoregateError):
    """The request's timeout passed before this was scored."""

    status, code, title = 504, "deadline_exceeded", "Deadline exceeded"
    detail = "the request's timeout passed before this was scored"

    def __init__(self, *, stage: str = "", faults: Sequence[Fault] = ()) -> None:
        self.stage = stage
        super().__init__(f"{type(self).detail}, in the stage {stage}" if stage else "", faults=faults)
