"""Questions about one picture to a VQA model, and errors in the form of OpenAI's servers."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request, Response

from models.images.image import Image
from service.core.concurrency.disconnect import while_connected
from service.core.errors import NotFound, ScoregateError
from service.core.lanes import BULK
from service.images.loader import ImageRef
from service.serving.admission import Demand
from service.serving.handle import Handle
from service.web.dialects.decisions.questions import Question, Reading
from service.web.endpoints import context_of, header_timeout, json_response, service_of
from service.web.problems import headers_of

INVALID = 422  # sent as 400, as by OpenAI, vLLM and SGLang


async def readings(
    request: Request, model: str | None, picture: ImageRef, questions: Sequence[Question], timeout_s: float
) -> tuple[list[Reading], str]:
    """
    Return the answer to each question, and the model's label.

    Args:
        model: a VQA model's name in the settings; None for the first.
        timeout_s: seconds from the first byte of the request, unless a header sets a timeout.

    Raises:
        NotFound: there is no such model.
        ScoregateError: the first error of a question.
    """
    service = service_of(request)
    asker = service.asker
    handle = chosen(asker.models, model)
    context = context_of(service, request, header_timeout(request) or round(timeout_s * 1000), BULK)
    request.state.items = len(questions)
    demand = Demand(len(questions), sum(each.characters for each in questions))

    def calls(image: Image, info: Any) -> list[Any]:
        return [each.call(image, info) for each in questions]

    work = asker.ask(handle, picture, calls, demand, context)
    outcomes, info = await while_connected(request.receive, work)
    return [reading(*pair) for pair in zip(questions, outcomes, strict=True)], info.label


def reading(question: Question, outcome: Any) -> Reading:
    """Return the probabilities.  Raises the question's error, with its place."""
    if isinstance(outcome, ScoregateError):
        raise outcome.of_part(question.place)
    return question.read(outcome)


def chosen(models: Mapping[str, Handle], name: str | None) -> Handle:
    """Return the VQA model of that name in the settings; the first without one.  Raises `NotFound`."""
    if not models:
        raise NotFound("no VQA model is configured")
    if name in (None, "default"):
        return next(iter(models.values()))
    if name not in models:
        raise NotFound(f"/model: there is no such VQA model here; there are {', '.join(models)}")
    return models[name]


def failed_nested(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error as OpenAI and vLLM have it."""
    status, headers, said = parts_of(error)
    return json_response({"error": {**said, "code": status}}, status, headers)


def parts_of(error: ScoregateError) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Return the status, the headers, and the fields that all forms have."""
    status = 400 if error.status == INVALID else error.status
    place = error.faults[0].pointer if error.faults else error.detail.partition(": ")[0]
    said = {
        "message": error.detail,
        "type": "invalid_request_error" if status < 500 else "server_error",
        "param": place if place.startswith("/") else None,
    }
    return status, headers_of(error), said
