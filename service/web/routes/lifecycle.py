"""`POST /models/{name}/load`, `/offload`, `/unload` and `/swap`: models that come and go."""

from fastapi import APIRouter, Request, Response

from service.core.fields import Revision, Strict
from service.serving.lifecycle import Action, Change
from service.web.caller import check_operator
from service.web.openapi import TEXT, Json, documented
from service.web.routing import json_response, service_of
from service.web.server import body

router = APIRouter()

NAME: Json = {"name": "name", "in": "path", "required": True, "schema": TEXT}
STATUSES = [403, 404, 409, 422, 500, 502, 503]


class SwapRequest(Strict):
    """
    Body of `POST /models/{name}/swap`.

    Attributes:
        revision: of the same checkpoint.
    """

    revision: Revision


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
