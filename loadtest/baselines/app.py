"""`POST /score` and `GET /readyz` of the baselines."""

import base64
import io
from collections.abc import Awaitable, Callable
from typing import Any

import PIL.Image
from fastapi import FastAPI

from service.images.sources import Base64
from service.metrics.common.registry import metrics
from service.web.wire.requests import ScoreRequest, requests_with

SCORE = 0.8

Scorer = Callable[[ScoreRequest], Awaitable[Any]]
Hold = Callable[[int], None]
"""Occupy the device for the duration of a batch of that many calls."""


def app(score: Scorer) -> FastAPI:
    """Return an app whose `POST /score` calls *score*."""
    served = FastAPI()

    async def post_score(wanted: ScoreRequest) -> dict[str, Any]:
        await score(wanted)
        results = [
            {"index": index, "scores": dict.fromkeys(wanted.metrics, SCORE)}
            for index in range(len(wanted.all_items().values()))
        ]
        return {"request_id": "", "results": results, "partial": False, "models": {}, "timings_ms": {}}

    post_score.__annotations__["wanted"] = requests_with(metrics()).score  # with each metric's options
    served.add_api_route("/score", post_score, methods=["POST"])

    @served.get("/readyz")
    async def readyz() -> dict[str, bool]:
        return {"ready": True}

    return served


def encoded(wanted: ScoreRequest) -> list[bytes]:
    """Return the picture files of a request, all plain base64."""
    images = (item.image for item in wanted.all_items().values())
    return [base64.b64decode(image.text) for image in images if isinstance(image, Base64)]


def decode(file: bytes) -> PIL.Image.Image:
    """Decode a picture, as all servers do."""
    return PIL.Image.open(io.BytesIO(file)).convert("RGB")
