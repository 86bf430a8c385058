"""Batches closed by size or by time."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from starlette.concurrency import run_in_threadpool

from loadtest.baselines.app import Hold, decode, encoded
from service.web.wire.requests import ScoreRequest

TIMER_S = 0.01


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
