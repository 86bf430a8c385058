"""
Test doubles of the servers that people write first, on the wire format of `POST /score`.

`python -m loadtest.baselines --server bare|one-by-one|timer --port P [--a-ms A --b-ms B --max-items N]`

**bare** checks the body, decodes base64 and answers a constant: the least that such an endpoint costs.
**one-by-one** decodes and scores pair after pair, the device under a lock, in FastAPI's threads.  **timer**
batches by the rule of Ray's `@serve.batch`, with its default time: a batch is closed when it is full or 10 ms
after its first call, also while the device is busy, and then waits for its turn.  Their model is the timed
double's.
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

from service.schemas import ScoreRequest

TIMER_S = 0.01
SCORE = 0.8

Scorer = Callable[[ScoreRequest], Awaitable[Any]]
Hold = Callable[[int], None]


def app(score: Scorer) -> FastAPI:
    """`POST /score` and `GET /readyz` around *score*."""
    served = FastAPI()

    @served.post("/score")
    async def post_score(wanted: ScoreRequest) -> dict[str, Any]:
        await score(wanted)
        results = [
            {"index": index, "scores": dict.fromkeys(wanted.metrics, SCORE)}
            for index in range(len(wanted.all_items()))
        ]
        return {"request_id": "", "results": results, "partial": False, "models": {}, "timings_ms": {}}

    @served.get("/readyz")
    async def readyz() -> dict[str, bool]:
        return {"ready": True}

    return served


def encoded(wanted: ScoreRequest) -> list[bytes]:
    """The picture files of a request, all of them given as plain base64."""
    return [base64.b64decode(str(item.image)) for item in wanted.all_items()]


def decode(file: bytes) -> PIL.Image.Image:
    """The pixels, as every server needs them."""
    return PIL.Image.open(io.BytesIO(file)).convert("RGB")


async def bare(wanted: ScoreRequest) -> None:
    """base64, and nothing else."""
    encoded(wanted)


def one_by_one(hold: Hold) -> Scorer:
    """Pair after pair; the lock keeps two threads off the device."""
    lock = threading.Lock()

    def score(wanted: ScoreRequest) -> None:
        for file in encoded(wanted):
            decode(file)
            with lock:
                hold(1)

    return lambda wanted: run_in_threadpool(score, wanted)


class Timer:
    """Batches closed by size or by time, one at a time on the device."""

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
        calls = [asyncio.get_running_loop().create_future() for _ in wanted.all_items()]
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
    """Serve one of them until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", choices=("bare", "one-by-one", "timer"), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--a-ms", type=float, default=20)
    parser.add_argument("--b-ms", type=float, default=6)
    parser.add_argument("--max-items", type=int, default=32)
    arguments = parser.parse_args()

    def hold(calls: int) -> None:
        time.sleep((arguments.a_ms + arguments.b_ms * calls) / 1000)

    servers: dict[str, Callable[[], Scorer]] = {
        "bare": lambda: bare,
        "one-by-one": lambda: one_by_one(hold),
        "timer": lambda: Timer(hold, arguments.max_items).score,
    }
    score = servers[arguments.server]()
    uvicorn.run(app(score), host="127.0.0.1", port=arguments.port, access_log=False)


if __name__ == "__main__":
    main()
