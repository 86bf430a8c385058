"""The service with a collector of its traces."""

from contextlib import asynccontextmanager

import pytest

from models.families.openai.llm import OpenAiLLM
from tests.support.fake_openai import FakeOpenAI
from tests.support.otlp_collector import Collector


@pytest.fixture
def collector(httpserver):
    return Collector(httpserver)


@pytest.fixture
def traced(serve, collector):
    """A client of a service that sends its traces; all of them are there when it has been closed."""

    @asynccontextmanager
    async def served(**tables):
        async with serve(telemetry={"otlp_endpoint": collector.url}, **tables) as client:
            yield client

    return served


@pytest.fixture
def server():
    """An OpenAI-compatible server."""
    with FakeOpenAI().running() as fake:
        yield fake


@pytest.fixture
def traced_with_llm(traced, fakes, server):
    """The same service, whose question LLM is *server*."""
    fakes["questions"] = OpenAiLLM("m", extra_body={})
    remote = {"family": "openai", "base_url": server.base_url, "model": "m"}
    local = {"clip": {"family": "open_clip"}, "vqa": {"family": "clip_flant5"}}
    return lambda: traced(models={**local, "questions": remote})
