"""`GET /` and `/playground/{name}`: static files; `GET /openapi.json` and `/docs`: the OpenAPI document."""

import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import new_class
from typing import Any, Generic, NotRequired, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, create_model
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from typing_extensions import TypedDict, is_typeddict

from service import __version__
from service.core.errors import NotFound
from service.metrics.common.contract import Metric
from service.web.openapi import KEYS, REFERENCE, components
from service.web.routes.labels import LabelRequest
from service.web.routes.models import LoadRequest
from service.web.wire.responses import Line, Problem, ScoreAnswer, ScoreEnd
from service.web.wire.types import Requests
from service.wiring.bootstrap import Service

FOLDER = Path(__file__).parents[1] / "playground"
NAMES = {path.name for path in FOLDER.iterdir() if path.suffix in (".html", ".css", ".js", ".svg")}
PATHS = {"/", *(f"/playground/{name}" for name in NAMES)}  # these need no key
FILES = StaticFiles(directory=FOLDER)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-cache",  # browsers revalidate by the ETag, so an update shows immediately
}

mimetypes.add_type("text/javascript", ".js")  # the default from Python 3.12 on


async def file(request: Request) -> Response:
    """Return a file of the playground, or its page.  Raises `NotFound`."""
    name = request.path_params.get("name", "index.html")
    if name not in NAMES:
        raise NotFound
    response = await FILES.get_response(name, request.scope)
    response.headers.update(HEADERS)
    return response


routes = [Route("/", file), Route("/playground/{name}", file)]


D = TypeVar("D")


class OfFrame(TypedDict):
    """The score of one frame; of a video also its number, and the second at which it appears."""

    score: float
    frame: NotRequired[int]
    time_s: NotRequired[float]


class Frames(BaseModel, Generic[D]):
    """Details of an item with several images: one entry for each."""

    frames: list[D]
    frames_used: int
    frames_given: int


class Grid(BaseModel, Generic[D]):
    """
    Details of a grid: those of its score, and what is in it.

    Attributes:
        side: cells in each row and in each column.
    """

    grid: D
    side: int
    frames_used: int
    frames_given: int


def details_by_metric(metrics: Mapping[str, Metric]) -> type[BaseModel]:
    """Build the type of `details` in a result, as *metrics* declare them."""
    fields: dict[str, Any] = {name: (details_of(metric) | None, None) for name, metric in metrics.items()}
    return create_model("Details", __doc__="Details by metric.", **fields)


def details_of(metric: Metric) -> Any:
    """Return the type of one metric's details, for a single image or several."""
    details: Any = metric.details
    if metric.options.together:
        return details
    of_one: Any = of_frame(details)
    return details | Frames[of_one] | Grid[details]


def of_frame(details: Any) -> Any:
    """Return the type of a metric's details for one of several frames, with the score of the frame."""
    if not is_typeddict(details):
        return details
    described = {"__doc__": f"{details.__doc__} Of one frame."}
    return new_class(
        f"{details.__name__}OfFrame", (details, OfFrame), {}, lambda body: body.update(described)
    )


router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
async def document(request: Request) -> Response:
    """Return the OpenAPI document.  The first request has it built, off the event loop."""
    service: Service = request.app.state.service
    return Response(await service.parser.run(request.app.document), media_type="application/json")


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Redirect to the page about the API, by a relative address: a proxy may have added a prefix."""
    return RedirectResponse("playground/docs.html")


def openapi(service: Service, requests: Requests, routes: Sequence[APIRoute]) -> dict[str, Any]:
    """Build the document of *routes*: what FastAPI derives, with the bodies that they read and write."""
    document = get_openapi(title="Scoregate", version=__version__, routes=routes)
    details = details_by_metric(service.metrics)
    bodies = (
        requests.score,
        requests.rank,
        requests.compare,
        requests.decide,
        requests.questions,
        LabelRequest,
        LoadRequest,
    )
    schemas = components(*bodies, ScoreAnswer, Line, ScoreEnd, details, Problem)
    schemas["Result"]["properties"]["details"] = {"$ref": REFERENCE.format(model="Details")}
    served = getattr(service, "engine", service).metrics  # all declared metrics before the engine exists
    schemas["ScoreRequest"]["properties"]["metrics"]["items"]["enum"] = list(served)
    for model, field in (("ScoreRequest", "required"), ("WireItem", "metrics"), ("WireItem", "required")):
        names, _ = schemas[model]["properties"][field]["anyOf"]  # the other is null
        names["items"]["enum"] = list(served)
    for ranked in ("RankRequest", "WireCascade"):
        schemas[ranked]["properties"]["metric"]["enum"] = list(served)
    name, _ = schemas["CompareRequest"]["properties"]["metric"]["anyOf"]  # the other is null
    name["enum"] = list(served)
    document["components"]["schemas"] |= schemas
    document["components"]["securitySchemes"] = KEYS
    if service.settings.server.api_keys_file:
        document["security"] = [{scheme: []} for scheme in KEYS]
    return document
