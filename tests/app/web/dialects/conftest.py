"""The dialects on the app around fake models."""

import json
import pickle
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from service.web.dialect_ports import ports
from service.web.dialects.scoring import DialectScoring
from tests.support.fake_service import DIALECTS
from tests.support.pictures import png

PAUSES_S = 0.002, 0.02  # before a repetition: a hundredth of the service's


@dataclass
class Apps:
    """Clients of the main port, of the dialects' and of the one for pickles."""

    service: Any
    main: httpx.AsyncClient
    private: httpx.AsyncClient
    pickled: httpx.AsyncClient

    async def score(self, image: bytes, prompt: str, metric: str = "vqascore") -> float:
        """What `POST /score` says."""
        body = {
            "request": json.dumps(
                {"items": [{"prompt": prompt, "image": {"part": "a"}}], "metrics": [metric]}
            )
        }
        answer = await self.main.post("/score", data=body, files={"a": image})
        return answer.json()["results"][0]["scores"][metric]

    async def unpickled(self, body: Any, path: str = "/", **more: Any) -> tuple[int, Any]:
        """The status, and what a trainer reads of the answer."""
        content = body if isinstance(body, bytes) else pickle.dumps(body)
        answer = await self.pickled.post(path, content=content, **more)
        return answer.status_code, pickle.loads(answer.content)


@pytest.fixture
def dialects(serve: Any) -> Callable[..., AbstractAsyncContextManager[Apps]]:
    """The apps, with all dialects; keyword arguments are settings' tables."""

    @asynccontextmanager
    async def served(dialects: dict[str, Any] | None = None, **tables: Any) -> AsyncIterator[Apps]:
        settings = {"enabled": DIALECTS, "port": 1, "pickle_port": 2, **(dialects or {})}
        async with AsyncExitStack() as stack:
            main = await stack.enter_async_context(serve(dialects=settings, **tables))
            state = main._transport.app.state
            scoring = DialectScoring(state.service, PAUSES_S)
            own = [
                await stack.enter_async_context(
                    httpx.AsyncClient(transport=httpx.ASGITransport(each.app), base_url="http://trainer")
                )
                for each in ports(state.service, scoring, state.bodies)
            ]
            yield Apps(state.service, main, *own)

    return served


PICTURES = [png(colour) for colour in ("red", "green", "blue", "white")]
PROMPTS = ["a red square", "a green square", "a blue square", "a white square"]
BROKEN = PICTURES[0][:40]
