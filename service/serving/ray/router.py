"""The request router: sends a group of calls to the replica that the gateway chose."""

from typing import Any

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from service.serving.ray import running

REPLICA_ARGUMENT = "replica"  # the argument that names it


class ByName(RequestRouter):  # type: ignore[misc]
    """
    Sends each group to the replica that it names, or to any other if that one has ended.

    Only the gateway has the data to choose: where an image's features are cached, and the load it sent.
    """

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Take the new replicas, and publish them to the gateway."""
        super().update_replicas(replicas)
        running.publish(self._deployment_id.name, [each.replica_id.unique_id for each in replicas])

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Return the candidates, the best first."""
        arguments: dict[str, Any] = pending_request.kwargs if pending_request else {}
        named = [
            each
            for each in candidate_replicas
            if each.replica_id.unique_id == arguments.get(REPLICA_ARGUMENT)
        ]
        others = [each for each in candidate_replicas if each not in named]
        return [rank for rank in (named, others) if rank]
