"""The runtime on Ray Serve: replicas on a cluster, asked by this gateway."""

import asyncio
from functools import partial

from models.core.contract import RemoteModel
from service.core.concurrency.threads import on_thread
from service.core.settings import NotYet
from service.serving.base_runtime import BaseRuntime, queue_of, shares_of
from service.serving.loading import is_placed
from service.serving.ray.backend import ReplicatedBackend
from service.serving.ray.cluster import connected


class RayRuntime(BaseRuntime):
    """
    Connections to a cluster and to served models, and handles for both.

    With the address `local` it starts Ray, and the models on it.  On any other cluster they have been
    deployed before: a gateway that came or went would otherwise replace the models of all.
    """

    def stalled(self) -> bool:
        """Never: Ray replaces a replica that stalls, and this process could do no better."""
        return False

    async def _start(self) -> None:
        runtime = self._settings.runtime
        for name, model in self._models.items():
            assert isinstance(model, RemoteModel)
            await self._serve_remote(name, model)
        self._stack.enter_context(connected(runtime.address))
        from service.serving.ray.deploy import deploy, deployed

        if runtime.address == "local":
            await on_thread(deploy, self._settings)
        placed = [name for name, table in self._settings.models.items() if is_placed(self._settings, table)]
        if absent := sorted(set(placed) - await on_thread(deployed)):
            raise NotYet(f"models.{absent[0]}: not on the cluster yet: run scoregate-server deploy")
        for name in placed:
            await self._serve_replicas(name)

    async def _serve_replicas(self, name: str) -> None:
        """Raises `NotYet` where no replica of the model can be asked in time."""
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
            raise NotYet(f"models.{name}: no replica of it runs on the cluster") from None
        self._serve(backend)
