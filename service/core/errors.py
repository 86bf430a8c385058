"""
Everything that can go wrong, as one tree.  Each class carries its HTTP status and a stable code.

    ScoregateError                      500 internal
    + Malformed                         400 malformed
    + Unauthorized                      401 unauthorized
    + Forbidden                         403 forbidden
    + NotFound                          404 not_found
    | + UnknownQuestionSet              404 unknown_question_set
    + MethodNotAllowed                  405 method_not_allowed
    + RequestTimeout                    408 request_timeout
    + TooLarge                          413 too_large
    | + LargerThanQuota                 413 larger_than_quota
    + UnsupportedMediaType              415 unsupported_media_type
    + Invalid                           422 invalid
    | + UnknownMetric                   422 unknown_metric
    | + ImageFailed                     422 image_failed        (of /rank, which names the image)
    | + BadImage                        422 bad_image           (an item's error, in a 200)
    |   + NotBase64                     422 not_base64
    |   + ImageUndecodable              422 image_undecodable
    |   + ImageTooLarge                 422 image_too_large
    |   + UrlNotAllowed                 422 url_not_allowed
    |   + UrlFailed                     422 url_failed
    | + NoQuestions                     422 no_questions        (a metric's error, in a 200)
    | + NoText                          422 no_text             (a metric's error, in a 200)
    | + NoTask                          422 no_task             (a metric's error, in a 200)
    | + UnknownClass                    422 unknown_class       (a metric's error, in a 200)
    | + NoMasks                         422 no_masks            (a metric's error, in a 200)
    | + MissingPicture                  422 missing_picture     (a metric's error, in a 200)
    | + CallRefused                     422 call_refused        (a metric's error, in a 200)
    + LaneFull                          429 lane_full           Retry-After (interactive)
    + QuotaExceeded                     429 quota_exceeded      Retry-After
    + MemoryFull                        429 memory_full         Retry-After
    + ModelFault                        500 model_fault
    + UpstreamFailed                    502 upstream_failed     (a metric's error, in a 200)
    + QuestionLLMFailed                 502 question_llm_failed
    + Overloaded                        503 overloaded          Retry-After (bulk)
    + NotReady                          503 not_ready           Retry-After
    | + Draining                        503 draining            Retry-After
    | + Replaced                        503 model_replaced      (the new model is asked)
    + DeadlineExceeded                  504 deadline_exceeded

Raise the most telling leaf.  What happens to one item or one metric never fails its neighbours: the
engine turns it into an entry of the answer; only what concerns the whole request becomes its status.
"""

from collections.abc import Sequence

from service.core.fault import Fault as Fault
from service.core.fault import ScoregateError as ScoregateError
from service.core.fault import bare as bare


class Malformed(ScoregateError):
    """The body cannot be read at all."""

    status, code, title = 400, "malformed", "Malformed request"


class Unauthorized(ScoregateError):
    """Keys are configured and none of them was given."""

    status, code, title = 401, "unauthorized", "Key missing or unknown"
    detail = "no valid key; send 'Authorization: Bearer KEY' or 'X-API-Key: KEY'"


class Forbidden(ScoregateError):
    """The key is known and has no right to this."""

    status, code, title = 403, "forbidden", "Forbidden"


class NotFound(ScoregateError):
    """No such route."""

    status, code, title = 404, "not_found", "Not found"
    detail = "there is no such path; GET /openapi.json lists all paths"


class UnknownQuestionSet(NotFound):
    """No question set is stored under that id."""

    code, title = "unknown_question_set", "Unknown question set"


class MethodNotAllowed(ScoregateError):
    """The route exists, the method doesn't."""

    status, code, title = 405, "method_not_allowed", "Method not allowed"
    detail = "this path does not allow that method; the header Allow lists those that it does"


class RequestTimeout(ScoregateError):
    """Headers or body came too slowly, or stopped coming."""

    status, code, title = 408, "request_timeout", "Request too slow"


class TooLarge(ScoregateError):
    """The body, or what it asks of a model, is over the limit.  Never with Retry-After: it never fits."""

    status, code, title = 413, "too_large", "Request too large"


class LargerThanQuota(TooLarge):
    """More pairs of an item and a metric than the key's quota ever holds."""

    code, title = "larger_than_quota", "Larger than the key's quota"


class UnsupportedMediaType(ScoregateError):
    """Neither JSON nor multipart."""

    status, code, title = 415, "unsupported_media_type", "Unsupported media type"
    detail = "send application/json or multipart/form-data"


class Invalid(ScoregateError):
    """The body can be read and says something that is not allowed."""

    status, code, title = 422, "invalid", "Invalid request"


class UnknownMetric(Invalid):
    """A metric this server does not serve."""

    code, title = "unknown_metric", "Unknown metric"


class ImageFailed(Invalid):
    """A picture of a ranking has no score, and the request asked to be refused then."""

    code, title = "image_failed", "Image without a score"


class BadImage(Invalid):
    """An image's bytes are the item's fault."""

    code, title = "bad_image", "Bad image"


class NotBase64(BadImage):
    """The image's text is not base64."""

    code, title = "not_base64", "Not base64"


class ImageUndecodable(BadImage):
    """The bytes are empty, no image, or a broken one."""

    code, title = "image_undecodable", "Image cannot be decoded"


class ImageTooLarge(BadImage):
    """More pixels or bytes than the server takes, told from the header alone."""

    code, title = "image_too_large", "Image too large"


class UrlNotAllowed(BadImage):
    """An image by URL where the operator allows none."""

    code, title = "url_not_allowed", "URLs are not allowed"


class UrlFailed(BadImage):
    """An image that could not be fetched."""

    code, title = "url_failed", "URL could not be fetched"


class NoQuestions(Invalid):
    """Nothing was found to ask about a prompt, so there is nothing to score."""

    code, title = "no_questions", "No questions"


class Unanswered(Invalid):
    """The questions about a prompt were asked, and none of the answers says anything."""

    code, title = "unanswered", "No answer"


class NoText(Invalid):
    """Nothing says which text an image should show."""

    code, title = "no_text", "No text asked for"


class NoTask(Invalid):
    """Nothing says which objects an image should show."""

    code, title = "no_task", "No objects asked for"


class UnknownClass(Invalid):
    """An object of a class that the detector does not know."""

    code, title = "unknown_class", "Unknown class of objects"


class NoMasks(Invalid):
    """Colours are asked for, and the detector does not say which pixels belong to an object."""

    code, title = "no_masks", "Detector without masks"


class MissingPicture(Invalid):
    """A metric looks at references or a source, and the item has none."""

    code, title = "missing_picture", "Missing picture"


class CallRefused(Invalid):
    """A model cannot take this call, whatever its load."""

    code, title = "call_refused", "Call refused by the model"


class LaneFull(ScoregateError):
    """The interactive lane is full, or would not be served before the deadline."""

    status, code, title = 429, "lane_full", "Lane full"


class QuotaExceeded(ScoregateError):
    """The key has used up its quota for now; the wait is exact."""

    status, code, title = 429, "quota_exceeded", "Quota exceeded"
    exact_wait = True


class MemoryFull(ScoregateError):
    """Requests hold as many bytes as they may together."""

    status, code, title = 429, "memory_full", "Memory full"


class Overloaded(ScoregateError):
    """The bulk lane is full."""

    status, code, title = 503, "overloaded", "Overloaded"


class ModelFault(ScoregateError):
    """A model broke its contract: wrong length, an exception, a number that is not finite."""

    status, code, title = 500, "model_fault", "Model fault"


class UpstreamFailed(ScoregateError):
    """A model that another process serves did not answer, or badly."""

    status, code, title = 502, "upstream_failed", "Upstream failed"


class QuestionLLMFailed(ScoregateError):
    """The question LLM answered badly or not at all."""

    status, code, title = 502, "question_llm_failed", "Question LLM failed"


class NotReady(ScoregateError):
    """A model that is needed is not serving, or the store of question sets failed."""

    status, code, title = 503, "not_ready", "Not ready"


class Replaced(NotReady):
    """The model was replaced before it answered.  The new one is asked: no caller sees this."""

    code, title = "model_replaced", "Model replaced"
    detail = "the model was replaced by another one meanwhile"


class Draining(NotReady):
    """The service is shutting down and takes nothing new."""

    code, title = "draining", "Shutting down"
    detail = "the service is shutting down"


REFUSALS = (
    LaneFull,
    MemoryFull,
    Overloaded,
    NotReady,
)  # nothing is wrong with the request; later it may be taken


class DeadlineExceeded(ScoregateError):
    """The request's time ran out before this was scored."""

    status, code, title = 504, "deadline_exceeded", "Deadline exceeded"
    detail = "the request's timeout passed before this was scored"

    def __init__(self, *, stage: str = "", faults: Sequence[Fault] = ()) -> None:
        self.stage = stage
        super().__init__(f"{type(self).detail}, in the stage {stage}" if stage else "", faults=faults)
