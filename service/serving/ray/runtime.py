"""The runtime on Ray Serve: replicas on a cluster, asked by this gateway."""

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from functools import partial
from typing import Self

from models.contract import RemoteModel
from models.family import Loaded
from service.redis.client import RedisClient
from service.serving.handle import Handle
from service.serving.handles import Handles, queue_of, shares_of
from service.serving.loading import is_placed
from service.serving.ray.backend import ReplicatedBackend
from service.serving.ray.cluster import connected
from service.settings import SettingsError
from service.settings.tree import Settings
from service.telemetry import Instruments

log = logging.getLogger("scoregate.ray")


class RayRuntime:
    """
    Connections to a cluster and to served models, and handles for both.

    With the address `local` it starts Ray, and the models on it.  On any other cluster they have been
    deployed before: a gateway that came or went would otherwise replace the models of all.

    Args:
        models: those that other servers serve, by configured name.
        assigned: the configured name that serves each (metric, role).
    """

    def __init__(
        self,
        models: Mapping[str, Loaded],
        settings: Settings,
        assigned: Mapping[tuple[str, str], str],
        cpu: Mapping[str, Executor],
        instruments: Instruments,
        redis: RedisClient | None = None,
    ) -> None:
        self._models, self._settings = dict(models), settings
        self._cpu, self._instruments = cpu, instruments
        self._handles = Handles(settings, assigned, cpu, instruments, redis)
        self._stack = AsyncExitStack()

    @property
    def handles(self) -> Mapping[str, Handle]:
        """By configured name."""
        return self._handles.by_name

    def handle(self, metric: str, role: str) -> Handle | None:
        """The handle that serves *role* for *metric*; None where no model does."""
        return self._handles.of(metric, role)

    def stalled(self) -> bool:
        """Never: Ray replaces a replica that stalls, and this process could do no better."""
        return False

    async def __aenter__(self) -> Self:
        """Connect, and wait until every model has a replica.  Raises `SettingsError`."""
        async with AsyncExitStack() as starting:
            starting.push_async_exit(self)
            await self._start()
            starting.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Let what is under way be answered, and leave the cluster."""
        await self._handles.close()
        await self._stack.aclose()
        await self._handles.close_caches()

    async def _start(self) -> None:
        runtime = self._settings.runtime
        for name, model in self._models.items():
            assert isinstance(model, RemoteModel)
            await self._handles.serve_remote(name, model)
        self._stack.enter_context(connected(runtime.address))
        from service.serving.ray.deploy import deploy, deployed

        if runtime.address == "local":
            await asyncio.to_thread(deploy, self._settings)
        placed = [name for name, table in self._settings.models.items() if is_placed(self._settings, table)]
        if absent := sorted(set(placed) - await asyncio.to_thread(deployed)):
            raise SettingsError(f"models.{absent[0]}: not on the cluster yet: run scoregate-server deploy")
        for name in placed:
            await self._serve(name)

    async def _serve(self, name: str) -> None:
        """Raises `SettingsError` where no replica of the model can be asked in time."""
        from service.serving.ray.deployment import ServeDeployment

        table, queue = self._settings.models[name], self._settings.queue
        backend = ReplicatedBackend(
            name,
            ServeDeployment(name),
            partial(queue_of, table, queue),
            cpu=self._cpu,
            instruments=self._instruments,
            shares=shares_of(queue),
        )
        await self._stack.enter_async_context(backend)
        try:
            async with asyncio.timeout(self._settings.runtime.start_timeout_s):
                await backend.ready.wait()
        except TimeoutError:
            raise SettingsError(f"models.{name}: no replica of it runs on the cluster") from None
        self._handles.serve(backend)
