"""
Everything that can go wrong, as one tree of classes.  Each carries its HTTP status and a stable code.

Raise the most specific class.  Only an error of a whole request becomes the response's status; the
error of an item or metric stands in a response with status 200.  docs/reference/errors.md lists them.
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
    """
    A bug in the service.

    Report it; the log has the traceback.
    """

    # The base of all errors.  The first paragraph of each docstring says when it is raised, the second what a
    # caller does.

    status = 500
    code = "internal"
    title = "Internal error"
    detail = "internal error; the log of the service has more under this request id"
    where = "both"  # "request", "entry" of a response with status 200, or both
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
    """
    The body is not valid JSON or multipart, a form has neither `request` nor a file `image`, or the request
    is not valid HTTP/1.1.
    """

    status, code, title = 400, "malformed", "Malformed request"
    where = "request"


class Unauthorized(ScoregateError):
    """
    The key is missing or unknown.

    If it is new, the file may have a mistake: see the log.
    """

    status, code, title = 401, "unauthorized", "Key missing or unknown"
    detail = "no valid key; send 'Authorization: Bearer KEY' or 'X-API-Key: KEY'"
    where = "request"


class Forbidden(ScoregateError):
    """
    The key may not use the lane or the path, or not change models.

    Set the `priority` that the detail names; get the right `models`.
    """

    status, code, title = 403, "forbidden", "Forbidden"
    where = "request"


class NotFound(ScoregateError):
    """There is no such path or model."""

    status, code, title = 404, "not_found", "Not found"
    detail = "there is no such path; GET /openapi.json lists all paths"
    where = "request"


class UnknownQuestionSet(NotFound):
    """
    No question set has this id.

    Write it with `POST /questions`, or send the questions.
    """

    code, title = "unknown_question_set", "Unknown question set"
    where = "both"


class MethodNotAllowed(ScoregateError):
    """The path does not support this method; see the header `Allow`."""

    status, code, title = 405, "method_not_allowed", "Method not allowed"
    detail = "this path does not allow that method; the header Allow lists those that it does"
    where = "request"


class RequestTimeout(ScoregateError):
    """
    Headers or body did not arrive, or too slowly.

    For a slow network raise `server.body_timeout_s`.
    """

    status, code, title = 408, "request_timeout", "Request too slow"
    where = "request"


class Conflict(ScoregateError):
    """
    Another change of this model is under way.

    Wait.
    """

    status, code, title = 409, "conflict", "Conflict"
    where = "request"


class TooLarge(ScoregateError):
    """
    The body is over `server.body_limit_mb`, has more than 600,000 JSON values, or needs more of a model than
    one request may use.

    Send fewer items or frames, or multipart.
    """

    status, code, title = 413, "too_large", "Request too large"
    where = "request"


class LargerThanQuota(TooLarge):
    """
    More pairs than the key's quota for a minute.

    Send fewer, or get a larger quota.
    """

    code, title = "larger_than_quota", "Larger than the key's quota"


class UnsupportedMediaType(ScoregateError):
    """
    The body is neither `application/json` nor `multipart/form-data`, or compressed.

    Set `Content-Type`, no `Content-Encoding`.
    """

    status, code, title = 415, "unsupported_media_type", "Unsupported media type"
    detail = "send application/json or multipart/form-data"
    where = "request"


class Invalid(ScoregateError):
    """
    See `errors`. As an entry: the pinned question set belongs to another prompt, or the item lacks a text
    that its rubric needs.
    """

    status, code, title = 422, "invalid", "Invalid request"


class UnknownMetric(Invalid):
    """
    This server does not serve the metric.

    `GET /models` lists those served; the detail has the models that a known one needs.
    """

    code, title = "unknown_metric", "Unknown metric"
    where = "request"


class UnknownPolicy(Invalid):
    """
    The settings have no policy of this name.

    `GET /policies` lists them.
    """

    code, title = "unknown_policy", "Unknown policy"
    where = "request"


class ImageFailed(Invalid):
    """
    A picture of `/rank` has no score; `errors` has its code.

    Leave it out, or set `on_error`.
    """

    code, title = "image_failed", "Image without a score"
    where = "request"


class BadImage(Invalid):
    """The picture is invalid, in another way than those of the next codes."""

    code, title = "bad_image", "Bad image"
    where = "entry"


class NotBase64(BadImage):
    """
    Not base64 as required.

    Encode the file's bytes, or send file parts.
    """

    code, title = "not_base64", "Not base64"
    where = "entry"


class ImageUndecodable(BadImage):
    """The file is empty, broken, not of `images.formats`, or costs more to decode than its header says."""

    code, title = "image_undecodable", "Image cannot be decoded"
    where = "entry"


class ImageTooLarge(BadImage):
    """
    The picture has more pixels or bytes than `images` allows, a longer side, or takes more memory to decode.

    Scale the picture down.
    """

    code, title = "image_too_large", "Image too large"
    where = "entry"


class NoFrames(BadImage):
    """
    No frame of the video is between `start` and `end`.

    The detail has the length.
    """

    code, title = "no_frames", "No frames"
    where = "entry"


class UrlNotAllowed(BadImage):
    """
    The service fetches no pictures, or none from that host.

    Send the bytes.
    """

    code, title = "url_not_allowed", "URLs are not allowed"
    where = "entry"


class UrlFailed(BadImage):
    """
    The host does not answer in time, or answers with an error.

    Check the host, or send the bytes.
    """

    code, title = "url_failed", "URL could not be fetched"
    where = "entry"


class NoQuestions(Invalid):
    """
    The question LLM wrote no question about the prompt, or none that follows from it.

    Use another metric, or send questions.
    """

    code, title = "no_questions", "No questions"


class Unanswered(Invalid):
    """
    The model was unsure about all questions, wrote neither yes nor no, or gave no label any probability.

    Use another metric or VQA model.
    """

    code, title = "unanswered", "No answer"
    where = "entry"


class NoText(Invalid):
    """
    The prompt has no text in double quotes, and `ocr.text` is not set.

    Quote the text, or set the option.
    """

    code, title = "no_text", "No text asked for"
    where = "entry"


class NoTask(Invalid):
    """
    The prompt fits none of GenEval's templates, and `options.geneval` is missing or incomplete.

    Send `tag` and `include`.
    """

    code, title = "no_task", "No objects asked for"
    where = "entry"


class UnknownClass(Invalid):
    """
    The detector was not trained for an object of the prompt.

    Use another detector, or another word.
    """

    code, title = "unknown_class", "Unknown class of objects"
    where = "entry"


class NoMasks(Invalid):
    """
    The prompt has a colour, and the detector returns boxes only.

    Use one with masks, such as Mask2Former.
    """

    code, title = "no_masks", "Detector without masks"
    where = "entry"


class MissingImage(Invalid):
    """
    The metric, with its options, needs references or a source that the item lacks, or several frames.

    Send the picture, or a video, or choose another rubric.
    """

    code, title = "missing_picture", "Missing picture"
    where = "entry"


class CallRefused(Invalid):
    """
    A model cannot process the call: a label of several tokens, several pictures for a model that takes one, a
    too thin picture, or a prompt that is too long for the question LLM or refused by it.

    Change the item.
    """

    code, title = "call_refused", "Call refused by the model"
    where = "entry"


class LaneFull(ScoregateError):
    """
    The interactive lane is full, or the request would miss its deadline.

    Wait `retry_after_s`; without it, send fewer items or a longer timeout. Send offline work as `bulk`.
    """

    status, code, title = 429, "lane_full", "Lane full"


class QuotaExceeded(ScoregateError):
    """
    The key's quota is used up.

    Wait: `retry_after_s` is exact.
    """

    status, code, title = 429, "quota_exceeded", "Quota exceeded"
    exact_wait = True
    where = "request"


class MemoryFull(ScoregateError):
    """
    Bodies, pictures by URL and unread lines of streams use all of `server.requests_mb`.

    Wait `retry_after_s`; send smaller pictures, or raise the setting.
    """

    status, code, title = 429, "memory_full", "Memory full"


class Overloaded(ScoregateError):
    """
    The bulk lane is full, a question set was still queued at its deadline, or there are too many connections
    or unfinished bodies.

    Wait `retry_after_s`; send fewer in parallel.
    """

    status, code, title = 503, "overloaded", "Overloaded"


class ModelFault(ScoregateError):
    """
    A model failed on this call, or its output was not finite. As a status: a model loaded again has other
    numbers.

    Retry once, then report it.
    """

    status, code, title = 500, "model_fault", "Model fault"


class UpstreamFailed(ScoregateError):
    """
    The model's server could not be reached, or returned an error (see the detail) or something unusable.

    Try again; see `/readyz`.
    """

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
    """
    What a model wrote does not have the form of its rubric. The detail has the reason, and the beginning of
    the text.

    Allow a repetition (`retries`), or make the rubric's instructions clearer.
    """

    code, title = "answer_refused", "Answer refused"

    def __init__(self, detail: str = "", reason: Misread = Misread.NOT_JSON) -> None:
        self.reason = reason
        super().__init__(detail)


class QuestionLLMFailed(ScoregateError):
    """
    The question LLM did not answer in time, or its answer is no question set.

    Try again, or send questions. See `/health` and the LLM's log.
    """

    status, code, title = 502, "question_llm_failed", "Question LLM failed"


class NotReady(ScoregateError):
    """
    A required model does not serve, the question store failed, or decoding processes were killed. `/livez`:
    the process hangs.

    Wait; see `/readyz`.
    """

    status, code, title = 503, "not_ready", "Not ready"


class ModelChanged(NotReady):
    """
    A model was replaced during the request, and again during its repetition.

    Retry.
    """

    code, title = "model_changed", "Model changed"
    detail = "the model was replaced by another one meanwhile"
    where = "request"


class Draining(NotReady):
    """
    The service is shutting down.

    Use another replica.
    """

    code, title = "draining", "Shutting down"
    detail = "the service is shutting down"


REFUSALS = (LaneFull, MemoryFull, Overloaded, NotReady)  # these requests are valid, and may be accepted later


class DeadlineExceeded(ScoregateError):
    """
    The time ran out in the stage that the detail names. As a status: no score was ready.

    Set a longer timeout, or send fewer items.
    """

    status, code, title = 504, "deadline_exceeded", "Deadline exceeded"
    detail = "the request's timeout passed before this was scored"

    def __init__(self, *, stage: str = "", faults: Sequence[Fault] = ()) -> None:
        self.stage = stage
        super().__init__(f"{type(self).detail}, in the stage {stage}" if stage else "", faults=faults)
