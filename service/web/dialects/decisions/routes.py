"""
Typed questions about one picture, with a probability for each answer.

`POST /v1/decisions` has OpenAI's body or SGLang's, and `POST /v1/systemone` that of vLLM and SGLang.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Discriminator, RootModel

from service.core.errors import Invalid, ScoregateError
from service.core.fields import branch
from service.images.loader import ImageRef
from service.web.dialects.decisions.openai import OpenAiRequest
from service.web.dialects.decisions.sglang import SglangRequest
from service.web.dialects.decisions.systemone import SystemOneRequest
from service.web.dialects.questions import TypedQuestion, failed_nested, parts_of, readings, within_limits
from service.web.dialects.registry import Dialect
from service.web.dialects.wire import ImageSource, read_as, source_of
from service.web.endpoints import json_response, service_of
from service.web.problems import errors_in

router = APIRouter(include_in_schema=False)
dialect = Dialect("decisions", router, clients="clients of OpenAI's, SGLang's and vLLM's decision endpoints")

AnyRequest = OpenAiRequest | SglangRequest | SystemOneRequest


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


def failed(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error as OpenAI has it, and SGLang's fields."""
    status, headers, said = parts_of(error)
    nested = {**said, "code": error.code}
    return json_response({"error": nested, "object": "error", **said, "code": status}, status, headers)


@router.post("/v1/decisions")
@errors_in(failed)
async def decisions(request: Request) -> Response:
    """Answer questions in OpenAI's or SGLang's form."""
    return await answered(request, *await read_as(request, DecisionsRequest, lambda wire: asked(wire.root)))


@router.post("/v1/systemone")
@errors_in(failed_nested)
async def systemone(request: Request) -> Response:
    """Answer questions in the form of vLLM's structured decisions."""
    return await answered(request, *await read_as(request, SystemOneRequest, asked))


def asked(wire: AnyRequest) -> tuple[AnyRequest, ImageSource | None, list[TypedQuestion]]:
    """Return a request with its picture and its questions.  Raises `Invalid`."""
    questions = within_limits(wire.asked())
    return wire, shared_image(wire, questions), questions


async def answered(
    request: Request, wire: AnyRequest, image: ImageSource | None, questions: list[TypedQuestion]
) -> Response:
    """Return the response with all answers.  Raises the first error of a question."""
    timeout_s = service_of(request).settings.dialects.timeouts_s.decisions
    ref = ImageRef(image) if image else None
    found, model = await readings(request, wire.model, ref, questions, timeout_s)
    return json_response(wire.answer(found, model, request.state.request_id))


def shared_image(wire: AnyRequest, questions: Sequence[TypedQuestion]) -> ImageSource | None:
    """Return the only picture of a request; None if each question has its own.  Raises `Invalid`."""
    found = wire.image_sources()
    if not found and all(each.own_images for each in questions):
        return None
    if len(found) != 1:
        place = found[1][0] if found else "/images or /input"
        raise Invalid(f"{place}: the request has {len(found)} pictures; questions are about exactly one")
    [(_, address)] = found
    return source_of(address)
