"""
The errors: one class for each code of the service, as in `docs/reference/errors.md`, and the client's own.

Both whole requests and single metrics of an item fail with one of these.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from typing import Any, Self

from scoregate.policy import UNREADABLE

# A setting in the detail of an error: its name, and its value in Python and as it is.
SETTING_MARK = re.compile("\0(\\w+)(?:\1(.*?)\1(.*?))?\0", re.DOTALL)

CLIENT_CLOSED = "closed"  # the code of an error of a client that was closed, for which nothing is tried again


def named(setting: str, value: object = None) -> str:
    """
    Return a setting for the detail of an error, which shows it as an argument in Python.

    The command line shows its flag in place of the name, see `ScoregateError.with_flags`.
    """
    if value is None:
        return f"\0{setting}\0"
    plain = str(value).replace("\0", "")
    return f"\0{setting}\1{value!r}\1{plain}\0"


def in_python(mark: re.Match[str]) -> str:
    """Return a setting of `named` as an argument in Python."""
    return f"`{mark[1]}`" if mark[2] is None else f"{mark[1]}={mark[2]}"


class ScoregateError(Exception):
    """
    Base class of all errors.  Its own instances are a fault of the service, or a response of an unknown form.

    Attributes:
        detail: one sentence for people.
        status: the HTTP status; 0 without a response, and for the error of one metric of one item.
        request_id: the request's id in the service's log; empty if the request never arrived.
        errors: the invalid fields of a request, each with `pointer`, `code` and `detail`.
        retry_after_s: seconds after which the service expects to accept such a request.
    """

    code = "internal"

    def __init_subclass__(cls, code: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.code = code or cls.code

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
        self._marked = detail or self.code
        self.detail = SETTING_MARK.sub(in_python, self._marked)
        self.status = status
        self.request_id = request_id
        self.errors = tuple(errors)
        self.retry_after_s = retry_after_s
        super().__init__(self.detail)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy the attributes, as the arguments of a subclass may be others."""
        return restored, (type(self), self.args, self.__dict__)

    @property
    def of_image(self) -> bool:
        """True if a picture cannot be read, so that the next try fails, too, whatever the metric."""
        return self.code in UNREADABLE

    def as_json(self) -> dict[str, str]:
        """Return the error of one score as the service and files of results hold it."""
        return {"code": self.code, "detail": self.detail}

    def at(self, place: str) -> Self:
        """Return a copy whose detail begins with *place*."""
        return self._with(f"{place}: {self._marked}")

    def with_flags(self, flag_of: Callable[[str, str | None], str]) -> Self:
        """
        Return a copy with the flags of the command line in place of the names of settings.

        Args:
            flag_of: returns the text of a setting and its value, if that is shown.
        """
        return self._with(SETTING_MARK.sub(lambda mark: flag_of(mark[1], mark[3]), self._marked))

    def _with(self, marked: str) -> Self:
        error = copy(self)
        error._marked, error.detail = marked, SETTING_MARK.sub(in_python, marked)
        error.args = (error.detail,)
        return error


# --- raised by the client itself ----------------------------------------------------------------


class ServiceConnectionError(ScoregateError, ConnectionError, code="connection_failed"):
    """The service could not be reached, or the connection broke; `status` is of a proxy's page, if any."""


class ServiceTimeoutError(ScoregateError, TimeoutError, code="timeout"):
    """The timeout of the call passed before the response."""


class WarnedError(ScoregateError, code="warned"):
    """The service warned about a score, and the client is strict."""


class BadResultsError(ScoregateError, ValueError, code="bad_results"):
    """A file of results belongs to another run, or is not valid."""


class InputError(ScoregateError, ValueError, code="bad_input"):
    """A file, a table, a column or a setting is not valid for its use; the message is one line."""


class NoColumnError(InputError, code="no_column"):
    """
    A table has no such column.

    Attributes:
        names: of the columns that there are.
        setting: that names the column; empty if it is not known.
        before: stands before the column in the setting's value, such as `ocr.text=`.
        taken: columns that other settings name.
        note: stands at the end.
    """

    def __init__(
        self,
        place: object,
        column: str,
        names: Iterable[str],
        setting: str = "",
        taken: Iterable[str] = (),
        note: str = "",
        before: str = "",
    ) -> None:
        self.place, self.column, self.names = place, column, [*dict.fromkeys(names)]
        self.setting, self.before, self.taken, self.note = setting, before, {*taken}, note
        there = ", ".join(self.names) or "none"
        hint = f": {named(setting, before + self.likely)}" if setting else ""
        super().__init__(f"{place}: no column {column!r}; there are {there}{hint}{note}")

    @property
    def likely(self) -> str:
        """The column with the most similar name, or the only one that is not taken."""
        others = [name for name in self.names if name not in self.taken]
        close = get_close_matches(self.column, others, 1)
        return [*close, *(others if len(others) == 1 else []), "NAME"][0]


class ColumnError(InputError, code="bad_column"):
    """
    A column is not valid for the figure.

    Attributes:
        argument: the one of the function that holds the column, such as `metric`.
        why: one line.
    """

    def __init__(self, argument: str, why: str) -> None:
        super().__init__(f"{argument}: {why}")
        self.argument, self.why = argument, why


class NoResultError(ScoregateError, code="no_result"):
    """A requested score is missing, or a figure cannot be computed; the message is one line."""


class NoScoreError(ScoregateError, code="no_score"):
    """
    Some pictures have no score.

    Attributes:
        missing: the error of each such picture, by its index.
    """

    missing: Mapping[int, ScoregateError] = {}

    @classmethod
    def among(cls, outcomes: Sequence[Any]) -> NoScoreError:
        """Return the error for *outcomes* with errors; its text is the first one's."""
        missing = {index: one for index, one in enumerate(outcomes) if isinstance(one, ScoregateError)}
        index, first = next(iter(missing.items()))
        count = f"{len(missing)} of {len(outcomes)} pictures have no score"
        error = cls(f"{count}; picture {index}: {first.code}: {first.detail}", request_id=first.request_id)
        error.missing, error.__cause__ = missing, first
        return error


# --- codes of the service -----------------------------------------------------------------------


class MalformedError(ScoregateError, code="malformed"):
    """The body cannot be parsed."""


class UnauthorizedError(ScoregateError, code="unauthorized"):
    """The API key is missing or unknown."""


class ForbiddenError(ScoregateError, code="forbidden"):
    """The key has no permission for this."""


class NotFoundError(ScoregateError, code="not_found"):
    """There is no such path."""


class UnknownQuestionSetError(NotFoundError, code="unknown_question_set"):
    """No question set is stored under that id."""


class MethodNotAllowedError(ScoregateError, code="method_not_allowed"):
    """The path does not support the method."""


class RequestTimeoutError(ScoregateError, TimeoutError, code="request_timeout"):
    """The request arrived too slowly."""


class ConflictError(ScoregateError, code="conflict"):
    """Another change of the model is under way, or its state does not allow this one."""


class TooLargeError(ScoregateError, code="too_large"):
    """The request exceeds a limit that does not depend on load."""


class LargerThanQuotaError(TooLargeError, code="larger_than_quota"):
    """The request has more pairs of an item and a metric than the key's whole quota."""


class UnsupportedMediaTypeError(ScoregateError, code="unsupported_media_type"):
    """The body is neither JSON nor multipart."""


class InvalidError(ScoregateError, code="invalid"):
    """A field of the request is not valid."""


class UnknownMetricError(InvalidError, code="unknown_metric"):
    """The service does not serve this metric."""


class UnknownPolicyError(InvalidError, code="unknown_policy"):
    """The settings of the service have no policy of this name."""


class ImageFailedError(InvalidError, code="image_failed"):
    """A picture of a ranking has no score, and `on_error` is `raise`."""


class BadImageError(InvalidError, code="bad_image"):
    """An image cannot be used; also raised by the client if it cannot encode one."""


class NotBase64Error(BadImageError, code="not_base64"):
    """The image's text is not base64."""


class ImageUndecodableError(BadImageError, code="image_undecodable"):
    """The bytes are empty, not an image, or a broken image."""


class ImageTooLargeError(BadImageError, code="image_too_large"):
    """The image has more pixels or bytes than the service accepts."""


class NoFramesError(BadImageError, code="no_frames"):
    """No frame of a video is between its start and its end."""


class UrlNotAllowedError(BadImageError, code="url_not_allowed"):
    """The image is a URL, and the operator or this client does not allow URLs."""


class UrlFailedError(BadImageError, code="url_failed"):
    """The service could not fetch the image."""


class NoQuestionsError(InvalidError, code="no_questions"):
    """No questions could be derived from the prompt."""


class UnansweredError(InvalidError, code="unanswered"):
    """No question got a usable answer."""


class NoTextError(InvalidError, code="no_text"):
    """The request does not say which text the image should show."""


class NoTaskError(InvalidError, code="no_task"):
    """The request does not say which objects the image should show."""


class UnknownClassError(InvalidError, code="unknown_class"):
    """The detector does not support this class of objects."""


class NoMasksError(InvalidError, code="no_masks"):
    """Colours are to be checked, but the detector returns no masks."""


class MissingImageError(InvalidError, code="missing_picture"):
    """The metric needs references or a source, and the item has none."""


class CallRefusedError(InvalidError, code="call_refused"):
    """A model cannot take this call; a retry would fail, too."""


class LaneFullError(ScoregateError, code="lane_full"):
    """The interactive lane is full, or would be too late."""


class QuotaExceededError(ScoregateError, code="quota_exceeded"):
    """The key's quota of this minute is used up."""


class MemoryFullError(ScoregateError, code="memory_full"):
    """The requests in progress hold the maximum number of bytes."""


class OverloadedError(ScoregateError, code="overloaded"):
    """The bulk lane is full."""


class ModelFaultError(ScoregateError, code="model_fault"):
    """A model broke its contract."""


class UpstreamFailedError(ScoregateError, code="upstream_failed"):
    """A model server did not respond, or its response is not valid."""


class AnswerRefusedError(UpstreamFailedError, code="answer_refused"):
    """What a model wrote does not have the form of its rubric."""


class QuestionLLMFailedError(ScoregateError, code="question_llm_failed"):
    """The question LLM did not respond, or its response is not valid."""


class NotReadyError(ScoregateError, code="not_ready"):
    """A required model is not serving."""


class ModelChangedError(NotReadyError, code="model_changed"):
    """A model was replaced during the request, or is not the one that scored earlier items of a run."""


class DrainingError(NotReadyError, code="draining"):
    """The service is shutting down."""


class DeadlineExceededError(ScoregateError, TimeoutError, code="deadline_exceeded"):
    """The deadline of the request passed before the item was scored."""


def tree(root: type[ScoregateError] = ScoregateError) -> list[type[ScoregateError]]:
    """Return *root* and all its subclasses."""
    return [root, *(kind for child in root.__subclasses__() for kind in tree(child))]


INPUT_ERRORS = (*tree(InputError), NoResultError)  # neither a response nor a line of results has one of these
CLIENT_ERRORS = (
    ServiceConnectionError,
    ServiceTimeoutError,
    WarnedError,
    BadResultsError,
    NoScoreError,
    *INPUT_ERRORS,
)
KINDS = {kind.code: kind for kind in tree() if kind not in INPUT_ERRORS}


def restored(kind: type[ScoregateError], args: tuple[Any, ...], state: Mapping[str, Any]) -> ScoregateError:
    """Return a copied or unpickled error."""
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(state)
    return error


def error_of(entry: Mapping[str, Any], *, status: int = 0, request_id: str = "") -> ScoregateError:
    """Return the error in a problem or of one metric; an unknown code gets the base class."""
    code = str(entry.get("code", ""))
    return KINDS.get(code, ScoregateError)(
        str(entry.get("detail", "")),
        code=code,
        status=status,
        request_id=request_id or str(entry.get("request_id", "")),
        errors=faults_of(entry.get("errors")),
        retry_after_s=seconds_of(entry.get("retry_after_s")),
    )


def reason_of(exc: BaseException) -> str:
    """Return the text of an exception in one line; the name of its class if it has none."""
    return " ".join(str(exc).split()) or type(exc).__name__


def faults_of(errors: Any) -> list[Mapping[str, Any]]:
    """Return the invalid fields of a request, each with its three texts; drop entries of another type."""
    return [
        {**fault, **{name: str(fault.get(name, "")) for name in ("pointer", "code", "detail")}}
        for fault in (errors if isinstance(errors, list) else [])
        if isinstance(fault, Mapping)
    ]


def seconds_of(value: Any) -> float | None:
    """Return *value* as seconds; None if it is not a finite number from 0."""
    valid = isinstance(value, (int, float)) and 0 <= value <= sys.float_info.max
    return float(value) if valid else None
