"""The client of a deployment on Ray Serve."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from grpc.aio import AioRpcError
from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle

from service.serving.ray import running
from service.serving.ray.deploy import APPLICATION
from service.serving.ray.groups import Described, GroupResult, Lost, Sent

LARGE_IMAGE_BYTES = 2**20  # bytes of images: above it Ray's object store is faster than a message (ADR 0017)


class ServeDeployment:
    """
    A deployment on the cluster that this process is connected to.

    Must be made on the gateway's event loop, on which Serve's router runs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        handle = serve.get_deployment_handle(name, APPLICATION)
        self._messages: DeploymentHandle = handle.options(_by_reference=False)  # gRPC, to the replica itself
        self._objects: DeploymentHandle = handle.options(_by_reference=True)  # Ray's own calls

    async def describe(self, replica: str) -> Described:
        """Return the description of *replica*."""
        described: Described = await result_of(self._messages.describe, replica)
        return described

    async def ask(self, replica: str, group: str, model: str, calls: Sequence[Sent]) -> GroupResult | None:
        """Return the result of a group.  Cancellation removes the calls from the replica's queue."""
        handle = self._objects if size(calls) > LARGE_IMAGE_BYTES else self._messages
        result: GroupResult | None = await result_of(handle.ask, replica, group, model, calls)
        return result

    async def promote(self, replica: str, group: str) -> None:
        """Make a group interactive; ignore a replica that is lost."""
        try:
            await result_of(self._messages.promote, replica, group)
        except Lost:
            return

    def listen(self, listener: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call *listener* with the replicas of Serve's router."""
        return running.listen(self._name, listener)


async def result_of(method: DeploymentHandle, replica: str, *arguments: object) -> Any:
    """Return the result of a replica's method.  Raises `Lost`, and what the replica's own code raises."""
    response = method.remote(*arguments, replica=replica)
    try:
        return await response
    except asyncio.CancelledError:
        response.cancel()
        raise
    except RayTaskError:
        raise  # raised by the replica's own code
    except (RayError, RayServeException, AioRpcError) as exc:
        raise Lost(f"{type(exc).__name__}") from exc


def size(calls: Sequence[Sent]) -> int:
    """Return the bytes of the images of *calls*, each image once."""
    return sum({image.digest: len(image.encoded) for each in calls for image in each.call.images}.values())
