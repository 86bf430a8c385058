"""The dialects on the app around fake models."""

import json
import pickle
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from service.core.errors import ScoregateError
from service.scoring.engine import Engine
from service.scoring.plan import UnopenedItem
from service.scoring.report import Report
from service.serving.context import Context
from service.web.dialect_ports import ports
from service.web.dialects.scoring import DialectScoring
from tests.support.fake_service import DIALECTS
from tests.support.pictures import png


class Flaky(Engine):
    """
    An engine that refuses its next requests, one by each of its *refusals*.

    Attributes:
        refused: the metrics of the last item alone that are refused; None for whole requests.
        asked: the number of items and the metrics of each request.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.refusals: list[ScoregateError] = []
        self.refused: Sequence[str] | None = None
        self.asked: list[tuple[int, Sequence[str]]] = []

    async def score(self, items: Sequence[UnopenedItem], metrics: Sequence[str], context: Context) -> Report:
        self.asked.append((len(items), metrics))
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal and self.refused is None:
            raise refusal
        report = await super().score(items, metrics, context)
        if refusal:
            last = report.items[-1]
            results = {**last.results, **dict.fromkeys(self.refused or (), refusal)}
            report.items[-1] = replace(last, results=results)
        return report

    @property
    def sizes(self) -> list[int]:
        """The number of items of each request."""
        return [items for items, _ in self.asked]


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
