"""Fixtures: the real app around fake models, without a socket."""

import base64
import io
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import PIL.Image
import pytest

from service.bootstrap import Service
from service.http.app import create_app
from service.settings.tree import Settings
from tests.support.fakes import FakeClip, FakeModel, FakeQuestionLLM, FakeVqa
from tests.support.redis_server import RedisServer, redis_server

Client = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


def pytest_configure() -> None:
    """Ctrl-C reaches what tests start, also where a shell runs all of this in its background, deaf to it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def fakes() -> dict[str, Any]:
    return {"clip": FakeClip(), "vqa": FakeVqa(), "questions": FakeQuestionLLM()}


@pytest.fixture
def serve(fakes: dict[str, FakeModel], tmp_path: Path) -> Client:
    """A client of the app around the fakes; keyword arguments are settings' tables."""

    @asynccontextmanager
    async def served(**tables: Any) -> AsyncIterator[httpx.AsyncClient]:
        families = {"clip": "open_clip", "vqa": "clip_flant5", "questions": "transformers"}
        batch = {"max_batch_ms": 60_000}  # tests hold the fakes, and their pace means nothing
        tree = {
            "models": {
                name: {"family": families.get(name, "fake"), "role": fake.info.role, "batch": batch}
                for name, fake in fakes.items()
            },
            "cache": {"questions": f"sqlite:///{tmp_path}/questions.sqlite3"},
            **tables,
        }
        service = Service(Settings.model_validate(tree), fakes)
        app = create_app(service)
        async with service:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                yield client

    return served


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server


def png(colour: str = "red", size: tuple[int, int] = (16, 16), mode: str = "RGB") -> bytes:
    """A plain PNG file."""
    return saved(PIL.Image.new("RGB", size, colour).convert(mode), "PNG")


def saved(image: PIL.Image.Image, format: str, **options: Any) -> bytes:
    """An image file's bytes."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def b64(data: bytes) -> str:
    """As JSON carries an image."""
    return base64.b64encode(data).decode()


def item(prompt: str = "a red square", image: Any = None, **more: Any) -> dict[str, Any]:
    """An item of a request."""
    return {"prompt": prompt, "image": b64(png()) if image is None else image, **more}
