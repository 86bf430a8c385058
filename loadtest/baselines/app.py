"""`POST /score` and `GET /readyz`, whatever scores."""

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
"""Keep the device for as long as a batch of so many calls takes."""


def app(score: Scorer) -> FastAPI:
    """`POST /score` and `GET /readyz` around *score*."""
    served = FastAPI()

    async def post_score(wanted: ScoreRequest) -> dict[str, Any]:
        await score(wanted)
        results = [
            {"index": index, "scores": dict.fromkeys(wanted.metrics, SCORE)}
            for index in range(len(wanted.all_items()))
        ]
        return {"request_id": "", "results": results, "partial": False, "models": {}, "timings_ms": {}}

    post_score.__annotations__["wanted"] = requests_with(metrics()).score  # with each metric's options
    served.add_api_route("/score", post_score, methods=["POST"])

    @served.get("/readyz")
    async def readyz() -> dict[str, bool]:
        return {"ready": True}

    return served


def encoded(wanted: ScoreRequest) -> list[bytes]:
    """The picture files of a request, all of them given as plain base64."""
    images = (item.image for item in wanted.all_items())
    return [base64.b64decode(image.text) for image in images if isinstance(image, Base64)]


def decode(file: bytes) -> PIL.Image.Image:
    """The pixels, as every server needs them."""
    return PIL.Image.open(io.BytesIO(file)).convert("RGB")
