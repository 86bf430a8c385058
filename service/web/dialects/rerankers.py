"""Functions that the endpoints of rerankers share: models, outcomes, and the format of a response."""

import time
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from service.core.errors import ScoregateError
from service.scoring.report import most_telling
from service.web.dialects.scoring import Outcomes, Wanted
from service.web.dialects.wire import dialects_of
from service.web.problems import errors_in, headers_of
from service.web.routing import json_response, service_of

router = APIRouter(include_in_schema=False)

UNCOUNTED = {"prompt_tokens": 0, "total_tokens": 0}  # typed clients need it; no tokens are counted


async def scored(request: Request, wanted: Sequence[Wanted]) -> Sequence[Outcomes]:
    """Return the outcomes.  Raises the most important error if nothing has a score."""
    timeout_s = service_of(request).settings.dialects.timeouts_s.rerank
    outcomes = await dialects_of(request).scored(request, wanted, timeout_s)
    errors = [error for found in outcomes for error in found.values() if isinstance(error, ScoregateError)]
    if len(errors) == len(wanted):
        raise most_telling(errors)
    return outcomes


def envelope(request: Request, metric: str) -> dict[str, Any]:
    """Build the fields of every response of Jina, Cohere and vLLM."""
    return {
        "id": request.state.request_id,
        "created": int(time.time()),
        "model": metric,
        "usage": UNCOUNTED,
    }


def failed(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error, with its text where clients of OpenAI, Cohere and Jina read it."""
    message = {"message": error.detail, "type": error.code, "param": None, "code": error.status}
    content = {"error": message, "message": error.detail, "detail": error.detail, "code": error.code}
    return json_response(content, error.status, headers_of(error))


@router.get("/v1/models")
@errors_in(failed)
async def models(request: Request) -> Response:
    """List the served metrics as OpenAI and vLLM list models, that of the settings first."""
    about = {"object": "model", "created": int(time.time()), "owned_by": "scoregate"}
    data = [{"id": name, **about} for name in dialects_of(request).metrics]
    return json_response({"object": "list", "data": data})
