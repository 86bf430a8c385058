"""The service in front of a fake OpenAI-compatible server."""

from contextlib import asynccontextmanager

import pytest

from models.families.decisions.model import DecisionModel
from models.families.openai.clip import OpenAiClip
from models.families.openai.llm import OpenAiLLM
from models.families.openai.rerank import OpenAiReranker
from models.families.openai.reward import OpenAiReward
from models.families.openai.safety import OpenAiSafety
from models.families.openai.vlm import OpenAiVlm
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
    async def served(composites=None, **more):
        remote = {"family": "openai", "base_url": server.base_url, "model": "m", "timeout_s": 5, **more}
        local = {"clip": {"family": "open_clip"}, "vqa": {"family": "clip_flant5"}}
        async with serve(models={**local, "questions": remote}, composites=composites or {}) as client:
            yield client

    return served


@pytest.fixture
def with_vlm(serve, fakes, server):
    """A client of a service whose VQA model is *server*."""
    fakes.clear()
    fakes["vqa"] = OpenAiVlm("m", question="Is {} here?", extra_body={})

    @asynccontextmanager
    async def served(dialects=None, **more):
        remote = {"family": "openai_vlm", "base_url": server.base_url, "model": "m", "timeout_s": 5, **more}
        async with serve(models={"vqa": remote}, dialects=dialects or {}) as client:
            yield client

    return served


@pytest.fixture
def with_decisions(serve, fakes, server):
    """A client of a service whose VQA model is the decision endpoint of *server*."""

    def served(max_questions=64):
        fakes.clear()
        fakes["vqa"] = DecisionModel("m", "openai", max_questions=max_questions, extra_body={})
        remote = {"family": "decisions", "base_url": server.base_url, "model": "m", "timeout_s": 5}
        return serve(models={"vqa": remote})

    return served


@pytest.fixture
def with_reranker(serve, fakes, server):
    """A function: a client of a service whose reranker is *server*, with those settings."""

    def served(**settings):
        fakes.clear()
        fakes["reranker"] = OpenAiReranker("m", extra_body={}, **settings)
        return serve(models={"reranker": remote("openai_rerank", server)})

    return served


@pytest.fixture
def with_safety(serve, fakes, server):
    """A function: a client of a service whose safety model is a VLM of *server*, with that policy."""

    def served(policy):
        fakes.clear()
        fakes["safety"] = OpenAiSafety("m", extra_body={}, policy=policy)
        return serve(models={"safety": {**remote("openai_safety", server), "policy": policy}})

    return served


@pytest.fixture
def with_clip(serve, fakes, server):
    """A function: a client of a service whose CLIP is *server*, with those settings."""

    def served(**settings):
        fakes.clear()
        fakes["clip"] = OpenAiClip("m", extra_body={}, **settings)
        return serve(models={"clip": remote("openai_clip", server)})

    return served


def remote(family, server):
    """The table of a model behind *server*."""
    return {"family": family, "base_url": server.base_url, "model": "m", "timeout_s": 5}


@pytest.fixture
def with_reward(serve, fakes, server):
    """A function: a client of a service whose reward model is *server*, with those settings."""

    def served(output=0):
        fakes.clear()
        extra = {"add_generation_prompt": True}
        fakes["hps"] = OpenAiReward("m", template="Rate: {}.", output=output, extra_body=extra)
        table = {"role": "reward", "family": "openai_reward", "base_url": server.base_url, "model": "m"}
        return serve(models={"hps": {**table, "timeout_s": 5}}, metrics={"reward_model": {"model": "hps"}})

    return served
