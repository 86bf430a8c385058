"""
The service around models that fail on demand.

    python -m tests.support.faulty --config tests/support/faulty.toml

It starts, logs and ends as `python -m service` does; only its models are fakes.  Words of a call are its
switches:

    slow      takes 10 ms of a CPU thread and 10 ms of the device
    held      keeps the device until SIGUSR1
    large     runs out of memory in a batch of more than four calls
    poisoned  raises, and its whole batch with it
    stuck     raises, and so does everything from then on, as with a broken CUDA context

`GET /counts` tells what the process holds at the moment.
"""

import asyncio
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import scoregate_server
from models.core.contract import Prepared
from service.core.concurrency.budget import one_caller
from service.core.concurrency.cpu_threads import SPARE_THREADS, FairThreads
from service.process import command, launch
from service.web.app import create_app
from service.web.edge import App
from service.wiring.bootstrap import Service
from tests.support.fakes import FakeClip, FakeModel, FakeQuestionLLM, FakeVqa

SLOW_S = 0.01
MOST_LARGE = 4  # calls in a batch that holds a large one
PARSERS = 4  # threads that parse bodies

released = threading.Event()
raised: Counter[str] = Counter()
stuck = threading.Event()


class Faulty(FakeModel):
    """Looks for its switches in what a call says."""

    def prepare(self, call: Any) -> Prepared:
        time.sleep(SLOW_S * ("slow" in text(call)))
        return super().prepare(call)

    def score(self, batch: Sequence[Prepared]) -> list[Any]:
        calls = [prepared.data for prepared in batch]
        words = Counter(word for call in calls for word in set(re.findall(r"\w+", text(call))))
        if words["held"]:
            released.clear()
            self.held = True
            released.wait(60)
            self.held = False
        time.sleep(SLOW_S * words["slow"])
        if words["stuck"] or stuck.is_set():
            stuck.set()
            raise RuntimeError("the device is gone")
        if words["large"] and len(batch) > MOST_LARGE:
            raised["large"] += 1
            import torch  # or every start would take as long as that takes

            raise torch.OutOfMemoryError("the batch is too large")
        if words["poisoned"]:
            raised["poisoned"] += 1
            raise RuntimeError("one call is poisoned")
        return [self.answer(call) for call in calls]


class FaultyClip(Faulty, FakeClip): ...


class FaultyVqa(Faulty, FakeVqa): ...


class FaultyQuestionLLM(Faulty, FakeQuestionLLM): ...


MODELS: dict[str, Faulty] = {"clip": FaultyClip(), "vqa": FaultyVqa(), "questions": FaultyQuestionLLM()}


def text(call: Any) -> str:
    """What a call says; an image says nothing."""
    return next((getattr(call, name) for name in ("question", "text", "user") if hasattr(call, name)), "")


class Watched(Service):
    """The service; its pools have all their threads from the start, to be counted."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        parsers = ThreadPoolExecutor(PARSERS)
        asyncio.get_running_loop().set_default_executor(parsers)
        await fill(partial(asyncio.get_running_loop().run_in_executor, parsers), PARSERS)
        for pool in self.cpu.values():
            await fill(partial(by_another, pool), self.settings.images.decode_workers + SPARE_THREADS)
        await fill(self.parser.run, 1)
        return self


def by_another(pool: FairThreads, work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Have work done for a caller of its own, for whom there is the spare thread."""
    with one_caller():
        return pool.run(work)


def with_counts(service: Service) -> App:
    """The service's app, with what it holds."""
    app = create_app(service)

    async def counted(_: Request) -> JSONResponse:
        return JSONResponse(counts(service))

    app.routes.append(Route("/counts", counted))
    return app


async def fill(run: Callable[..., asyncio.Future[Any]], size: int) -> None:
    """Have a pool start all its threads."""
    together = threading.Barrier(size)
    await asyncio.gather(*(run(together.wait) for _ in range(size)))


def counts(service: Service) -> dict[str, int]:
    """How much of everything that a request may leave behind."""
    queues = [hosted.queue for pool in service.runtime.pools for hosted in pool.hosted_models]
    return {
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "files": len(os.listdir("/dev/fd")),
        "under_way": sum(handle.under_way for handle in service.runtime.handles.values()),
        "entries": sum(len(lane) for queue in queues for lane in queue._lanes.values()),
        "pixels": service.images.pixels.held,
        "held": sum(model.held for model in MODELS.values()),
        "raised": raised.total(),
    }


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: released.set())
    launch.Service, launch.create_app = Watched, with_counts
    command.main = partial(command.main, lambda settings: dict(MODELS))
    scoregate_server.main()
