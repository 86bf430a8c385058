"""The runtime on Ray Serve: this process is a gateway to replicas on a cluster."""

import asyncio
from functools import partial

from models.core.contract import RemoteModel
from service.core.concurrency.cpu_threads import on_thread
from service.core.settings import NotYet
from service.serving.loading import is_placed
from service.serving.ray.backend import ReplicatedBackend
from service.serving.ray.cluster import connected
from service.serving.runtime import Runtime, queue_of


class RayRuntime(Runtime):
    """
    Models on a cluster, and connections to those that servers run.

    With the address `local` it starts Ray and deploys the models.  On any other cluster they have to be
    deployed before: otherwise each start of a gateway would replace the models of all gateways.
    """

    def stalled(self) -> bool:
        """Return False: Ray replaces replicas that stall."""
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
        """Make the handle of one model.  Raises `NotYet` if no replica of it is ready in time."""
        from service.serving.ray.deployment import ServeDeployment

        table, queue = self._settings.models[name], self._settings.queue
        backend = ReplicatedBackend(
            name,
            ServeDeployment(name),
            partial(queue_of, table, queue),
            cpu=self._cpu,
            instruments=self._instruments,
            grace_s=self._settings.server.grace_s,
        )
        await self._stack.enter_async_context(backend)
        try:
            async with asyncio.timeout(self._settings.runtime.start_timeout_s):
                await backend.ready.wait()
        except TimeoutError:
            raise NotYet(f"models.{name}: no replica of it runs on the cluster") from None
        self._serve(backend)
