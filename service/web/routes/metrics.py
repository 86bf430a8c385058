"""`GET /metrics`: Prometheus metrics, unless they have a port of their own."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from service.observability.instruments import CONTENT_TYPE
from service.web.openapi import documented
from service.web.routing import service_of

router = APIRouter()


@router.get("/metrics", response_class=PlainTextResponse, **documented(None))
async def metrics(request: Request) -> Response:
    """Return the Prometheus metrics."""
    return Response(service_of(request).instruments.exposition(), media_type=CONTENT_TYPE)
