"""`GET /livez`, `/readyz` and `/health`: is the process alive, can it serve, and what does it offer."""

from fastapi import APIRouter, Request, Response

from service.errors import NotReady
from service.http.openapi import documented
from service.http.responses import HealthAnswer, ReadyAnswer
from service.http.routing import json_response, service_of

router = APIRouter()


@router.get("/livez", **documented(None))
async def livez(request: Request) -> Response:
    """200 unless work waits and no batch has finished for `server.stall_s`."""
    if service_of(request).runtime.stalled():
        raise NotReady("no batch has finished for too long while work waits")
    return json_response({"status": "ok"})


@router.get("/readyz", **documented(ReadyAnswer))
async def readyz(request: Request) -> Response:
    """200 when every required model serves; 503 with reasons otherwise."""
    ready = service_of(request).readiness()
    if ready.reasons:
        raise NotReady("; ".join(ready.reasons))
    return json_response({"ready": True, "reasons": [], "models": ready.models, "caches": ready.caches})


@router.get("/health", **documented(HealthAnswer))
async def health(request: Request) -> Response:
    """The metrics on offer, in the shape that trainers look for."""
    roster = {name: ["ready"] for name in service_of(request).engine.metrics}
    return json_response({"status": "ok", "rewards": roster})
