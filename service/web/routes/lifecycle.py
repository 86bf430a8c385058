"""`POST /models/{name}/load`, `/offload` and `/unload`: models that come and go."""

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


class LoadRequest(Strict):
    """
    Body of `POST /models/{name}/load`.

    Attributes:
        revision: of the same checkpoint, in place of the loaded one.
    """

    revision: Revision | None = None


@router.post(
    "/models/{name}/load", **documented(Change, LoadRequest, also=[404, 409], never=[504], parameters=[NAME])
)
async def load(request: Request) -> Response:
    """Bring a model back, or load another revision of it; check its example, and serve it."""
    check_operator(request)
    wanted, _ = await body.read(request, LoadRequest, service_of(request).settings.server)
    return await change(request, "load", wanted.revision or "")


@router.post("/models/{name}/offload", **documented(Change, also=STATUSES, parameters=[NAME]))
async def offload(request: Request) -> Response:
    """Move the weights of a model to the host's memory."""
    return await change(request, "offload")


@router.post("/models/{name}/unload", **documented(Change, also=STATUSES, parameters=[NAME]))
async def unload(request: Request) -> Response:
    """Drop the weights of a model."""
    return await change(request, "unload")


async def change(request: Request, action: Action, revision: str = "") -> Response:
    """Change a model, and describe it."""
    check_operator(request)
    lifecycle = service_of(request).lifecycle
    return json_response(await lifecycle.change(request.path_params["name"], action, revision))
