"""`POST`, `GET` and `DELETE /models/{name}/shadow`: compare two models on live traffic."""

import math
from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field
from typing_extensions import TypedDict

from service.core.errors import Fault, Invalid
from service.core.fields import Revision, Strict
from service.scoring.shadows.comparison import Comparison
from service.scoring.shadows.shadow import Shadow
from service.web.caller import check_operator
from service.web.openapi import TEXT, Json, documented
from service.web.routing import json_response, service_of
from service.web.server import body
from service.web.shadow_page import POLICY, page

router = APIRouter()

PATH = "/models/{name}/shadow"
MAX_THRESHOLDS = 100

NAME: Json = {"name": "name", "in": "path", "required": True, "schema": TEXT}
THRESHOLD: Json = {
    "name": "threshold",
    "in": "query",
    "required": False,
    "schema": {"type": "array", "items": {"type": "number"}, "maxItems": MAX_THRESHOLDS},
    "description": "Thresholds of the served model; its quantiles by default.",
}
FORMAT: Json = {
    "name": "format",
    "in": "query",
    "required": False,
    "schema": {"enum": ["json", "html"]},
    "description": "Also chosen by the header Accept.",
}


class ShadowRequest(Strict):
    """
    Body of `POST /models/{name}/shadow`.

    Attributes:
        revision: of the same checkpoint, or the name of another model of the profile.
        share: of the inputs.
    """

    revision: Revision
    share: Annotated[float, Field(gt=0, le=1)] = 0.1


class ShadowAnswer(TypedDict):
    """
    A shadow and its comparison.

    Attributes:
        served, shadow: both models, `id@revision`.
        outdated: one of the models was replaced or freed since the start, so no pairs are added.
        counts: the shadow's scores by result: `ok`, `dropped` or `failed`.
        metrics: those that were scored by both models.
    """

    name: str
    revision: str
    share: float
    served: str
    shadow: str
    outdated: bool
    pending: int
    counts: dict[str, int]
    metrics: dict[str, Comparison]


@router.post(
    "/models/{name}/shadow",
    **documented(ShadowAnswer, ShadowRequest, also=[404, 409], never=[502, 504], parameters=[NAME]),
)
async def start(request: Request) -> Response:
    """Start a shadow of a model, or change the share of the running one."""
    check_operator(request)
    service = service_of(request)
    wanted, _ = await body.read(request, ShadowRequest, service.settings.server)
    name = request.path_params["name"]
    return json_response(answer(await service.shadows.start(name, wanted.revision, wanted.share)))


@router.get(PATH, **documented(ShadowAnswer, also=[403, 404, 422], parameters=[NAME, THRESHOLD, FORMAT]))
async def compared(request: Request) -> Response:
    """Return the comparison, as JSON or as a page."""
    check_operator(request)
    shadow = service_of(request).shadows.of(request.path_params["name"])
    content = answer(shadow, thresholds(request.query_params.getlist("threshold")))
    wanted = request.query_params.get("format")
    accepted = request.headers.get("accept", "").partition(",")[0].partition(";")[0]
    if wanted == "html" or (wanted is None and accepted == "text/html"):
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
        return Response(page(**content), media_type="text/html", headers=headers)
    if wanted not in (None, "json"):
        raise invalid("format", "is json or html")
    return json_response(content)


@router.delete(PATH, **documented(ShadowAnswer, also=[403, 404, 409], parameters=[NAME]))
async def end(request: Request) -> Response:
    """End a shadow, and return its last comparison."""
    check_operator(request)
    return json_response(answer(await service_of(request).shadows.end(request.path_params["name"])))


def answer(shadow: Shadow, thresholds: list[float] | None = None) -> ShadowAnswer:
    """Describe a shadow."""
    return {
        "name": shadow.served.name,
        "revision": shadow.revision,
        "share": shadow.share,
        "served": shadow.served.info.label,
        "shadow": shadow.shadow.info.label,
        "outdated": shadow.outdated,
        "pending": shadow.pending,
        "counts": dict(shadow.counts),
        "metrics": {
            name: shadow.comparison(name, thresholds or ())
            for name, pairs in shadow.pairs.items()
            if pairs.count
        },
    }


def thresholds(given: Iterable[str]) -> list[float]:
    """Return the numbers of the query.  Raises `Invalid`."""
    try:
        found = [float(each) for each in given]
    except ValueError:
        raise invalid("threshold", "is no number") from None
    if not all(map(math.isfinite, found)):
        raise invalid("threshold", "is not finite")
    if len(found) > MAX_THRESHOLDS:
        raise invalid("threshold", f"at most {MAX_THRESHOLDS} times")
    return found


def invalid(parameter: str, detail: str) -> Invalid:
    """Return the error of a parameter of the query."""
    return Invalid(f"{parameter}: {detail}", faults=[Fault("", "invalid_query", f"{parameter}: {detail}")])
