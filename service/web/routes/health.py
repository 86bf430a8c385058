"""`GET /livez`, `/readyz`, `/health` and `/metrics`: probes, what can be scored, and Prometheus metrics."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from service.core.errors import NotReady
from service.observability.instruments import CONTENT_TYPE
from service.serving.handle import Handle
from service.web.endpoints import json_response, service_of
from service.web.openapi import documented
from service.web.wire.responses import HealthAnswer, LiveAnswer, ReadyAnswer

router, scraped = APIRouter(), APIRouter()


@router.get("/livez", **documented(LiveAnswer, key=False))
async def livez(request: Request) -> Response:
    """200 unless work waits and no batch has finished for `server.stall_s`."""
    if service_of(request).runtime.stalled():
        raise NotReady("no batch has finished for too long while work waits")
    answer: LiveAnswer = {"status": "ok"}
    return json_response(answer)


@router.get("/readyz", **documented(ReadyAnswer, key=False))
async def readyz(request: Request) -> Response:
    """200 when every required model serves; 503 with reasons otherwise."""
    ready = service_of(request).readiness()
    if ready.reasons:
        raise NotReady("; ".join(ready.reasons))
    answer: ReadyAnswer = {
        "ready": True,
        "reasons": [],
        "models": {**ready.models},
        "caches": {**ready.caches},
    }
    return json_response(answer)


@router.get("/health", **documented(HealthAnswer))
async def health(request: Request) -> Response:
    """Return the metrics that are ready, in the shape that trainers read, and why others are not."""
    service = service_of(request)
    metrics, catalog = service.engine.metrics, service.engine.catalog
    degraded = {name: reason for name in metrics if (reason := catalog.degraded(name))}
    missing = {name: service.missing(each) for name, each in metrics.items()}
    devices = {
        name: lost for name, handle in service.runtime.handles.items() if (lost := lost_devices(handle))
    }
    # UniRL's trainer reads the keys of `rewards` only, so a metric that isn't ready must not be one.
    content: HealthAnswer = {
        "status": "degraded" if devices else "ok",
        "rewards": {name: ["ready"] for name in metrics if not (missing[name] or name in degraded)},
        "degraded": degraded,
        "not_ready": {name: reasons for name, reasons in missing.items() if reasons},
        "devices": devices,
    }
    return json_response(content)


def lost_devices(handle: Handle) -> dict[str, str]:
    """Return the devices that were taken out while others serve the model, each with its fault."""
    return {device: fault for device, fault in handle.backend.devices.items() if fault}


@scraped.get("/metrics", response_class=PlainTextResponse, **documented(None))
async def metrics(request: Request) -> Response:
    """Return the Prometheus metrics."""
    return Response(service_of(request).instruments.exposition(), media_type=CONTENT_TYPE)
