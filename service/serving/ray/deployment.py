"""The client of a deployment on Ray Serve."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle

from service.serving.ray import running
from service.serving.ray.application import APPLICATION
from service.serving.ray.contract import Answer, Described, Lost, Sent


class ServeDeployment:
    """A deployment on the cluster that this process is connected to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._handle: DeploymentHandle = serve.get_deployment_handle(name, APPLICATION)

    async def describe(self, replica: str) -> Described:
        """Return the description of *replica*."""
        described: Described = await self._answer("describe", replica)
        return described

    async def ask(self, replica: str, group: str, model: str, calls: Sequence[Sent]) -> Answer | None:
        """Return the answer to a group.  Cancellation removes the calls from the replica's queue."""
        answer: Answer | None = await self._answer("ask", replica, group, model, calls)
        return answer

    async def promote(self, replica: str, group: str) -> None:
        """Make a group interactive; ignore a replica that is lost."""
        try:
            await self._answer("promote", replica, group)
        except Lost:
            return

    def listen(self, listener: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call *listener* with the replicas of Serve's router, which the first call creates."""
        return running.listen(self._name, listener)

    async def _answer(self, method: str, replica: str, *arguments: object) -> Any:
        response = getattr(self._handle, method).remote(*arguments, replica=replica)
        try:
            return await response
        except asyncio.CancelledError:
            response.cancel()
            raise
        except RayTaskError:
            raise  # raised by the replica's own code
        except (RayError, RayServeException) as exc:
            raise Lost(f"{type(exc).__name__}") from exc
