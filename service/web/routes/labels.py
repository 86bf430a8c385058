"""`POST /decisions/{id}/label`."""

import re

from fastapi import APIRouter, Request, Response
from pydantic import StrictBool

from service.core.errors import NotFound
from service.core.fields import Name, Strict
from service.web.endpoints import json_response, service_of
from service.web.openapi import documented
from service.web.server.body import read_body
from service.web.wire.responses import LabelAnswer

router = APIRouter()

ID = "^[0-9a-f]{32}$"  # the form of a decision's id
STORED_STATUS = 202
PARAMETER = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "pattern": ID}}


class LabelRequest(Strict):
    """
    Body of `POST /decisions/{id}/label`.

    Attributes:
        good: whether users should see the picture.
        who: the person who says so.
    """

    good: StrictBool
    who: Name | None = None


@router.post(
    "/decisions/{id}/label",
    **documented(
        LabelAnswer, LabelRequest, also=[404], never=[502, 504], parameters=[PARAMETER], status=STORED_STATUS
    ),
)
async def label(request: Request) -> Response:
    """Store a person's label of a decision, which is not looked up: another process may have logged it."""
    service, id = service_of(request), request.path_params["id"]
    if service.decisions is None:
        raise NotFound("decisions are not logged: decisions.log is not set")
    if not re.fullmatch(ID, id):
        raise NotFound("no decision has such an id")
    wanted, _ = await read_body(request, LabelRequest, service.settings.server)
    await service.decisions.label(id, wanted.good, wanted.who)
    content: LabelAnswer = {"request_id": request.state.request_id}
    return json_response(content, STORED_STATUS)
