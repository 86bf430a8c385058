"""The local runtime: which model serves what, and where each of them runs."""

from contextlib import asynccontextmanager

import pytest

from models.core.contract import RemoteModel
from service.core.concurrency.cpu_threads import cpu_threads
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.observability.instruments import Instruments
from service.serving.runtime import LocalRuntime
from tests.support.fakes import FakeQuestionLLM, FakeVqa

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(models, assigned=None):
    """A runtime of *models* of the family `fake`."""
    tables = {name: {"family": "fake", "role": model.info.role} for name, model in models.items()}
    settings, cpu = Settings.model_validate({"models": tables}), cpu_threads(1)
    try:
        runtime = LocalRuntime(models, settings, assigned or {}, cpu, Instruments(models), print)
        async with runtime:
            yield runtime
    finally:
        for pool in cpu.values():
            pool.shutdown()


async def test_a_metrics_role_leads_to_the_model_that_is_assigned_to_it():
    """And to no other; every model has its handle."""
    assigned = {("vqascore", "vqa"): "b", ("dsg", "vqa"): "a"}
    async with running({"a": FakeVqa(), "b": FakeVqa()}, assigned) as runtime:
        assert ["a", "b"] == list(runtime.handles)
        assert runtime.handles["b"] is runtime.handle("vqascore", "vqa")
        assert runtime.handles["a"] is runtime.handle("dsg", "vqa")
        assert runtime.handle("dsg", "questions") is None
        assert not runtime.stalled()


async def test_models_share_a_device_but_for_those_that_generate():
    """A generation takes as long as many batches, so it has a thread of its own."""
    models = {"a": FakeVqa(), "b": FakeVqa(), "writer": FakeQuestionLLM()}
    async with running(models) as runtime:
        places = [[hosted.name for hosted in pool.hosted_models] for pool in runtime.pools]

    assert [["a", "b"], ["writer"]] == places


class Elsewhere(RemoteModel):
    """A model of another package, whose family forgot to name a server."""

    info = FakeVqa().info

    def prepare(self, call):
        raise NotImplementedError

    async def answer(self, prepared, post):
        raise NotImplementedError


async def test_a_remote_model_whose_table_names_no_server_ends_the_start():
    """One clear line, which names the table and its family."""
    with pytest.raises(SettingsError, match=r"models\.there: the family fake"):
        async with running({"there": Elsewhere()}):
            pass
