"""
`python -m loadtest.baselines --server bare|one-by-one|timer --port P`: a server to compare the service with.

It has the wire format of `POST /score`, and its model is a `time.sleep` of the same length as the service's
fake.

**bare** checks the body, decodes base64 and returns a constant: the minimum cost of such an endpoint.
**one-by-one** decodes and scores pair after pair in FastAPI's threads, with a lock for the device.
**timer** batches by size and time.
"""

import argparse
import asyncio
import base64
import io
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import PIL.Image
import uvicorn
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool

from service.images.loader import Base64
from service.metrics.common.registry import metrics
from service.web.wire.requests import ScoreRequest
from service.web.wire.translate import all_items
from service.web.wire.types import requests_with

SCORE = 0.8
TIMER_S = 0.01

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
            for index in range(len(all_items(wanted)))
        ]
        return {"request_id": "", "results": results, "partial": False, "models": {}, "timings_ms": {}}

    post_score.__annotations__["wanted"] = requests_with(metrics()).score  # it has each metric's options
    served.add_api_route("/score", post_score, methods=["POST"])

    @served.get("/readyz")
    async def readyz() -> dict[str, bool]:
        return {"ready": True}

    return served


def encoded(wanted: ScoreRequest) -> list[bytes]:
    """Return the picture files of a request, all plain base64."""
    images = (item.image for item in all_items(wanted).values())
    return [base64.b64decode(image.text) for image in images if isinstance(image, Base64)]


def decode(file: bytes) -> PIL.Image.Image:
    """Decode a picture, as all servers do."""
    return PIL.Image.open(io.BytesIO(file)).convert("RGB")


async def bare(wanted: ScoreRequest) -> None:
    """Decode base64, and nothing else."""
    encoded(wanted)


def one_by_one(hold: Hold) -> Scorer:
    """Score pair after pair; the lock allows one thread on the device."""
    lock = threading.Lock()

    def score(wanted: ScoreRequest) -> None:
        for file in encoded(wanted):
            decode(file)
            with lock:
                hold(1)

    return lambda wanted: run_in_threadpool(score, wanted)


class Timer:
    """
    Batches by the rule of Ray's `@serve.batch`, with its default time.

    A batch is closed when it is full or 10 ms after its first call, even if the device is busy.  Closed
    batches run one at a time.
    """

    def __init__(self, hold: Hold, max_items: int) -> None:
        self._hold, self._max_items = hold, max_items
        self._device = ThreadPoolExecutor(1)
        self._turn = asyncio.Semaphore(1)
        self._calls: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.Task[None] | None = None

    async def score(self, wanted: ScoreRequest) -> None:
        """Decode in threads, then queue one call for each picture."""
        self._loop = self._loop or asyncio.create_task(self._close_batches())
        await asyncio.gather(*(run_in_threadpool(decode, file) for file in encoded(wanted)))
        calls = [asyncio.get_running_loop().create_future() for _ in all_items(wanted)]
        for call in calls:
            self._calls.put_nowait(call)
        await asyncio.gather(*calls)

    async def _close_batches(self) -> None:
        while True:
            batch = [await self._calls.get()]
            closing = asyncio.get_running_loop().time() + TIMER_S
            try:
                async with asyncio.timeout_at(closing):
                    while len(batch) < self._max_items:
                        batch.append(await self._calls.get())
            except TimeoutError:
                pass
            task = asyncio.create_task(self._run(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, batch: list["asyncio.Future[None]"]) -> None:
        async with self._turn:
            await asyncio.get_running_loop().run_in_executor(self._device, self._hold, len(batch))
        for call in batch:
            if not call.done():
                call.set_result(None)


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=("bare", "one-by-one", "timer"), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--fixed-ms", type=float, default=20)
    parser.add_argument("--per-call-ms", type=float, default=6)
    parser.add_argument("--max-items", type=int, default=32)
    arguments = parser.parse_args()

    def hold(calls: int) -> None:
        time.sleep((arguments.fixed_ms + arguments.per_call_ms * calls) / 1000)

    servers: dict[str, Callable[[], Scorer]] = {
        "bare": lambda: bare,
        "one-by-one": lambda: one_by_one(hold),
        "timer": lambda: Timer(hold, arguments.max_items).score,
    }
    score = servers[arguments.server]()
    uvicorn.run(app(score), host="127.0.0.1", port=arguments.port, access_log=False)


if __name__ == "__main__":
    main()
