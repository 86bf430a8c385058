"""The service in front of a fake OpenAI-compatible server."""

from contextlib import asynccontextmanager

import pytest

from models.openai.llm import OpenAiLLM
from models.openai.vlm import OpenAiVlm
from tests.support.fake_openai import FakeOpenAI


@pytest.fixture
def server():
    with FakeOpenAI().running() as fake:
        yield fake


@pytest.fixture
def with_llm(serve, fakes, server):
    """A client of a service whose question LLM is *server*."""
    fakes["questions"] = OpenAiLLM("m", extra_body={"top_k": 1})

    @asynccontextmanager
    async def served(**more):
        remote = {"family": "openai", "base_url": server.base_url, "model": "m", "timeout_s": 5, **more}
        local = {"clip": {"family": "open_clip"}, "vqa": {"family": "clip_flant5"}}
        async with serve(models={**local, "questions": remote}) as client:
            yield client

    return served


@pytest.fixture
def with_vlm(serve, fakes, server):
    """A client of a service whose VQA model is *server*."""
    fakes.clear()
    fakes["vqa"] = OpenAiVlm("m", question="Is {} here?", extra_body={})

    @asynccontextmanager
    async def served(**more):
        remote = {"family": "openai_vlm", "base_url": server.base_url, "model": "m", "timeout_s": 5, **more}
        async with serve(models={"vqa": remote}) as client:
            yield client

    return served
