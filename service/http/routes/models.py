"""`GET /models`."""

from typing import Any

from fastapi import APIRouter, Request, Response

from service.bootstrap import Service
from service.http.openapi import documented
from service.http.responses import ModelsAnswer
from service.http.routing import json_response, service_of
from service.lanes import LANES

router = APIRouter()

OF_A_MODEL = ("role", "family", "id", "revision", "dtype", "device")
OF_A_METRIC = ("range", "direction", "paper", "roles")


@router.get("/models", **documented(ModelsAnswer))
async def models(request: Request) -> Response:
    """What is loaded, which metrics it serves, and the limits."""
    return json_response(described(service_of(request)))


def described(service: Service) -> dict[str, Any]:
    """Models, metrics and limits."""
    server, images = service.settings.server, service.settings.images
    return {
        "models": [
            {
                "name": name,
                **{field: getattr(handle.info, field) for field in OF_A_MODEL},
                "ready": not handle.missing,
            }
            for name, handle in service.runtime.handles.items()
        ],
        "metrics": {
            name: {field: getattr(metric, field) for field in OF_A_METRIC}
            for name, metric in service.engine.metrics.items()
        },
        "limits": {
            "max_items": server.max_items,
            "body_limit_mb": server.body_limit_mb,
            "default_timeout_ms": server.default_timeout_ms,
            "max_pixels": images.max_pixels,
            "max_side": images.max_side,
            "max_image_bytes": images.max_bytes,
            "lanes": LANES,
        },
    }
