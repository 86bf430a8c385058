"""`POST /models/{name}/load`, `/offload`, `/unload` and `/swap`: models that come and go."""

import re
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, StringConstraints

from service.core.fields import Strict, schema_keywords
from service.serving.lifecycle import Action, Change
from service.web.caller import check_operator
from service.web.openapi import TEXT, Json, documented
from service.web.routing import json_response, service_of
from service.web.server import body

router = APIRouter()

NAME: Json = {"name": "name", "in": "path", "required": True, "schema": TEXT}
STATUSES = [403, 404, 409, 422, 500, 502, 503]


CONTROL = r"\x00-\x1f\x7f"
OF_ONE_LINE = rf"^[^{CONTROL}]+$"


def of_one_line(text: str) -> str:
    """Refuse control characters, such as a line break."""
    if re.search(f"[{CONTROL}]", text):
        raise ValueError("contains a control character")
    return text


class SwapRequest(Strict):
    """
    Body of `POST /models/{name}/swap`.

    Attributes:
        revision: of the same checkpoint.
    """

    revision: Annotated[
        str,
        StringConstraints(min_length=1, max_length=256),
        AfterValidator(of_one_line),
        schema_keywords(pattern=OF_ONE_LINE),
    ]


@router.post("/models/{name}/load", **documented(Change, also=STATUSES, parameters=[NAME]))
async def load(request: Request) -> Response:
    """Bring a model back, check its example, and serve it."""
    return await change(request, "load")


@router.post("/models/{name}/offload", **documented(Change, also=STATUSES, parameters=[NAME]))
async def offload(request: Request) -> Response:
    """Move the weights of a model to the host's memory."""
    return await change(request, "offload")


@router.post("/models/{name}/unload", **documented(Change, also=STATUSES, parameters=[NAME]))
async def unload(request: Request) -> Response:
    """Drop the weights of a model."""
    return await change(request, "unload")


@router.post(
    "/models/{name}/swap", **documented(Change, SwapRequest, also=[404, 409], never=[504], parameters=[NAME])
)
async def swap(request: Request) -> Response:
    """Load another revision, check it, and replace the model."""
    check_operator(request)
    wanted, _ = await body.read(request, SwapRequest, service_of(request).settings.server)
    return await change(request, "swap", wanted.revision)


async def change(request: Request, action: Action, revision: str = "") -> Response:
    """Change a model, and describe it."""
    check_operator(request)
    lifecycle = service_of(request).lifecycle
    return json_response(await lifecycle.change(request.path_params["name"], action, revision))
