"""Fixtures: the real app around fake models, without a socket."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.serving.admission import AdmissionForecast, Demand
from service.web.app import create_app
from service.wiring.bootstrap import Service
from tests.support.devices import learns
from tests.support.fakes import FakeModel, new_fakes
from tests.support.services import running

Client = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@asynccontextmanager
async def served(
    fakes: dict[str, FakeModel], folder: Path, parts: Mapping[str, Any] | None = None, **tables: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an app around *fakes*, with *parts* of its own; keyword arguments are settings' tables."""
    families = {"clip": "open_clip", "vqa": "clip_flant5", "questions": "transformers"}
    batch = {"max_batch_ms": 60_000}  # tests hold the fakes, and their pace means nothing
    tree = {
        "models": {
            name: {"family": families.get(name, "fake"), "role": fake.info.role, "batch": batch}
            for name, fake in fakes.items()
        },
        "cache": {"questions": f"sqlite:///{folder}/questions.sqlite3"},
        **tables,
    }
    async with running(tree, fakes, **(parts or {})) as service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            yield client


def service_of(client: httpx.AsyncClient) -> Service:
    """Return the service of the app."""
    service: Service = client._transport.app.state.service  # type: ignore[attr-defined]
    return service


def forecast(client: httpx.AsyncClient, model: str, **expected: Any) -> list[int]:
    """Have the pool of a model expect this for each request, and return the calls of each, as they come."""
    backend = service_of(client).runtime.handles[model].backend
    whole, calls = backend.forecast, list[int]()

    def given(lane: str, demand: Demand) -> AdmissionForecast:
        calls.append(demand.calls)
        return replace(whole(lane, demand), **expected)

    backend.forecast = given  # type: ignore[method-assign]
    return calls


def is_dear(client: httpx.AsyncClient, model: str) -> None:
    """Teach the queues of a model that its batches take a second."""
    for _, hosted in service_of(client).runtime.handles[model].backend.queues:
        learns(hosted, fixed=1.0)


def decoded(client: httpx.AsyncClient) -> int:
    """Return how many times requests of the app have decoded a picture."""
    [family] = service_of(client).instruments.stage_duration.collect()
    counts = [each for each in family.samples if each.name.endswith("_count")]
    return int(sum(each.value for each in counts if each.labels["stage"] == "decode"))


def depths(client: httpx.AsyncClient, model: str) -> dict[str, float]:
    """Return how many calls wait for a model of the app, by lane: what a scrape says, which takes 50 ms."""
    [family] = service_of(client).instruments.queue_depth.collect()
    samples = [sample for sample in family.samples if sample.labels["model"] == model]
    return {sample.labels["lane"]: sample.value for sample in samples}


@dataclass
class Shared:
    """The apps of a module, by their settings, around the same fakes; they keep no scores."""

    stack: AsyncExitStack
    folders: pytest.TempPathFactory
    fakes: dict[str, FakeModel] = field(default_factory=new_fakes)
    clients: dict[str, httpx.AsyncClient] = field(default_factory=dict)

    @asynccontextmanager
    async def serve(self, **tables: Any) -> AsyncIterator[httpx.AsyncClient]:
        """The client of the app with those tables, which stays open until the module ends."""
        key = repr(tables)
        if key not in self.clients:
            folder = self.folders.mktemp("shared")
            cache = {"questions": f"sqlite:///{folder}/questions.sqlite3", "scores": "off"}
            opening = served(self.fakes, folder, **{"cache": cache, **tables})
            self.clients[key] = await self.stack.enter_async_context(opening)
        yield self.clients[key]


@pytest.fixture(scope="module")
async def shared_apps(
    anyio_backend: object, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Shared]:
    """What tests marked `shared` have in common in their module."""
    async with AsyncExitStack() as stack:
        yield Shared(stack, tmp_path_factory)


@pytest.fixture
def fakes(request: pytest.FixtureRequest) -> dict[str, FakeModel]:
    """Fakes of the test's own; of its module's, with nothing recorded yet, where it is marked `shared`."""
    if not request.node.get_closest_marker("shared"):
        return new_fakes()
    shared: Shared = request.getfixturevalue("shared_apps")
    for fake in shared.fakes.values():
        fake.batches.clear()
    return shared.fakes


@pytest.fixture
def serve(request: pytest.FixtureRequest, fakes: dict[str, FakeModel], parts: dict[str, Any]) -> Client:
    """
    A client of an app around the fakes and *parts*; keyword arguments are settings' tables.

    Tests marked `shared` have one app of each settings in their module.
    """
    if request.node.get_closest_marker("shared"):
        shared: Shared = request.getfixturevalue("shared_apps")
        return shared.serve
    folder: Path = request.getfixturevalue("tmp_path")
    return lambda **tables: served(fakes, folder, parts, **tables)
