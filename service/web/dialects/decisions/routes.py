"""
Typed questions about one picture, with a probability for each answer.

`POST /v1/decisions` has OpenAI's body or SGLang's, and `POST /v1/systemone` that of vLLM and SGLang.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Discriminator, RootModel

from models.images.image import Image
from service.core.concurrency.disconnect import while_connected
from service.core.errors import Invalid, NotFound, ScoregateError
from service.core.fields import branch
from service.core.lanes import BULK
from service.images.loader import ImageRef
from service.images.sources import Base64, Url
from service.serving.demand import Demand
from service.serving.handle import Handle
from service.web.caller import context_of, header_timeout
from service.web.dialects.decisions.openai import OpenAiRequest
from service.web.dialects.decisions.questions import Question
from service.web.dialects.decisions.sglang import SglangRequest
from service.web.dialects.decisions.systemone import SystemOneRequest
from service.web.dialects.entries import ADDRESS
from service.web.dialects.wire import read
from service.web.problems import problem
from service.web.routing import json_response, service_of

router = APIRouter(include_in_schema=False)

AnyRequest = OpenAiRequest | SglangRequest | SystemOneRequest
INVALID = 422  # sent as 400, as by all three servers


def form(body: Any) -> str:
    """Return the branch of a body: only SGLang's has `images`, and questions with `id` and `question`."""
    questions = body.get("questions") if isinstance(body, dict) else None
    listed = questions if isinstance(questions, list) else []
    fields = {name for each in listed if isinstance(each, dict) for name in each}
    is_sglang = isinstance(body, dict) and ("images" in body or fields & {"id", "question"})
    return "SGLang's body" if is_sglang else "OpenAI's body"


class DecisionsRequest(
    RootModel[
        Annotated[
            Annotated[OpenAiRequest, branch("OpenAI's body")]
            | Annotated[SglangRequest, branch("SGLang's body")],
            Discriminator(form),
        ]
    ]
):
    """The body of `POST /v1/decisions`."""


@router.post("/v1/decisions")
async def decisions(request: Request) -> Response:
    """Answer questions in OpenAI's or SGLang's form."""
    request.state.error_format = failed
    return await answered(request, (await read(request, DecisionsRequest)).root)


@router.post("/v1/systemone")
async def systemone(request: Request) -> Response:
    """Answer questions in the form of vLLM's structured decisions."""
    request.state.error_format = failed_systemone
    return await answered(request, await read(request, SystemOneRequest))


async def answered(request: Request, wire: AnyRequest) -> Response:
    """Return the response with all answers.  Raises the first error of a question."""
    service = service_of(request)
    asker, questions, picture = service.engine.asker, wire.asked(), picture_of(wire)
    model = chosen(asker.models, wire.model)
    timeout_ms = header_timeout(request) or round(service.settings.dialects.timeouts_s.decisions * 1000)
    context = context_of(service, request, timeout_ms, BULK)
    request.state.items = len(questions)
    demand = Demand(len(questions), sum(each.characters for each in questions))

    def calls(image: Image, info: Any) -> list[Any]:
        return [each.call(image, info) for each in questions]

    work = asker.ask(model, picture, calls, demand, context)
    outcomes, info = await while_connected(request.receive, work)
    readings = [reading(*pair) for pair in zip(questions, outcomes, strict=True)]
    return json_response(wire.answer(readings, info.label, request.state.request_id))


def reading(question: Question, outcome: Any) -> Any:
    """Return the probabilities.  Raises the question's error, with its place."""
    if isinstance(outcome, ScoregateError):
        raise outcome.of_part(question.place)
    return question.read(outcome)


def picture_of(wire: AnyRequest) -> ImageRef:
    """Return the only picture of a request.  Raises `Invalid`."""
    found = wire.pictures()
    if len(found) != 1:
        place = found[1][0] if found else "/images or /input"
        raise Invalid(f"{place}: the request has {len(found)} pictures; questions are about exactly one")
    [(_, address)] = found
    return ImageRef(Url(address) if ADDRESS.match(address) else Base64(address))


def chosen(models: dict[str, Handle], name: str | None) -> Handle:
    """Return the VQA model of that name in the settings; the first without one.  Raises `NotFound`."""
    if not models:
        raise NotFound("no VQA model is configured")
    if name in (None, "default"):
        return next(iter(models.values()))
    if name not in models:
        raise NotFound(f"/model: there is no such VQA model here; there are {', '.join(models)}")
    return models[name]


def failed(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error as OpenAI has it, and SGLang's fields."""
    status, headers, said = parts_of(error, request_id)
    nested = {**said, "code": error.code}
    return json_response({"error": nested, "object": "error", **said, "code": status}, status, headers)


def failed_systemone(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error as vLLM has it."""
    status, headers, said = parts_of(error, request_id)
    return json_response({"error": {**said, "code": status}}, status, headers)


def parts_of(error: ScoregateError, request_id: str) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Return the status, the headers, and the fields that all forms have."""
    wait = problem(error, request_id).headers.get("Retry-After")
    status = 400 if error.status == INVALID else error.status
    place = error.faults[0].pointer if error.faults else error.detail.partition(": ")[0]
    said = {
        "message": error.detail,
        "type": "invalid_request_error" if status < 500 else "server_error",
        "param": place if place.startswith("/") else None,
    }
    return status, {"Retry-After": wait} if wait else {}, said
