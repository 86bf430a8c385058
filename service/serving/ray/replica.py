"""A replica: a model with its own device and batcher, in a process that Ray placed."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace as changed
from time import monotonic
from typing import Any, cast

from models.core.calls import decoding_s
from models.core.contract import Model
from models.core.settings import PlacedSettings
from service.core.concurrency.cpu_threads import cpu_threads
from service.core.lanes import INTERACTIVE
from service.core.settings.tree import Settings
from service.observability.logs import configure_logging
from service.serving.backends.local import LocalBackend
from service.serving.batcher.device import Device, compute_on_one_core
from service.serving.batcher.pool import Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.job import Job, JobResult, all_done
from service.serving.loading import load_model, with_recipe
from service.serving.ray.groups import Described, GroupResult, Recorder, Sent
from service.serving.runtime import queue_of


class Unhealthy(Exception):
    """The replica should be replaced."""


class Replica:
    """
    The groups of all gateways, which wait for one model in its queue, by lanes.

    Args:
        backend: queues their calls.
        work: records the batches.
    """

    def __init__(self, backend: LocalBackend, work: Recorder, described: Described) -> None:
        self._backend, self._work, self._described = backend, work, described
        self._under_way: dict[str, list[Job]] = {}  # the jobs of a group that runs

    async def describe(self, replica: str = "") -> Described:
        """Return the replica and its model."""
        return self._described

    async def ask(
        self, group: str, model: str, calls: Sequence[Sent], replica: str = ""
    ) -> GroupResult | None:
        """
        Return the result of each call, in order; None if the replica has another model than *model*.

        If the gateway cancels, the calls leave the queue.

        Args:
            group: a name for `promote`.
        """
        if model != self._described.model:
            return None
        arrived = asyncio.get_running_loop().time()
        jobs = [Job(None, each.lane, deadline=arrived + each.left_s, call=each.call) for each in calls]
        self._under_way[group] = jobs
        try:
            return GroupResult(await self._results(jobs), self._work.take())
        finally:
            del self._under_way[group]
            for job in jobs:
                job.cancel()

    async def promote(self, group: str, replica: str = "") -> None:
        """Make the calls of *group* interactive, also those that are still being prepared."""
        for job in self._under_way.get(group, ()):
            job.promote()

    async def _results(self, jobs: Sequence[Job]) -> list[JobResult]:
        began = monotonic()
        calls = [job.call for job in jobs if job.call is not None]
        prepared = await self._backend.prepare(calls, jobs[0].lane)
        decoded_s = decoding_s(calls, began)
        prepared_s = monotonic() - began - decoded_s
        for job, made in zip(jobs, prepared, strict=True):
            self._backend.start_or_refuse(job, made)
        await all_done([job.result for job in jobs])
        return [changed(job.result.result(), decoded_s=decoded_s, prepared_s=prepared_s) for job in jobs]


class DeployedReplica(Replica):
    """
    The deployed class.

    Args:
        name: of the model in the settings.
        tables: the settings that the model needs.

    Raises:
        CheckpointError, ScoregateError: the model cannot be loaded, or fails on its example.
    """

    async def __init__(self, name: str, tables: dict[str, Any]) -> None:  # type: ignore[misc]
        configure_logging()
        settings = Settings.model_validate(tables)
        table = settings.models[name]
        model = cast(Model, load_model(name, table))
        work, self._broken = Recorder(name), list[str]()
        self._stall_s = settings.server.stall_s
        queue = queue_of(table, settings.queue, alone=model.info.generates)
        # A replica runs one batch at a time with all its threads: the gateways forecast it so.
        hosted = HostedModel(name, model, queue, large=True)
        cores = max(1, int(PlacedSettings.of(table).num_cpus))
        device = Device("", cores if model.info.device == "cpu" else 1)
        self._pool = Pool([hosted], work, devices=[device], on_broken=self._broken.append)
        cpu = cpu_threads(settings.images.decode_workers, compute_on_one_core)
        backend = LocalBackend(hosted, self._pool, table, cpu, mover=cpu[INTERACTIVE])
        self._stack = AsyncExitStack()
        await self._stack.enter_async_context(self._pool)
        example = model.prepare(model.example())
        seconds = queue.cost_model.run_s(example.cost)
        from ray import serve  # tests of the rest run without Ray

        id = serve.get_replica_context().replica_id.unique_id
        described = Described(id, with_recipe(model.info, table), example.cost, seconds)
        super().__init__(backend, work, described)

    async def check_health(self) -> None:
        """Raise `Unhealthy` if Ray should replace this replica."""
        if self._broken:
            raise Unhealthy(self._broken[0])
        if self._pool.stalled_for() > self._stall_s:
            raise Unhealthy(f"work waits, and no batch has finished for {self._stall_s:g} s")
