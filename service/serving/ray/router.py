"""How Ray Serve finds the replica for a group of calls: the gateway names it."""

from typing import Any

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from service.serving.ray import running

TARGET = "replica"  # the argument that names it


class ByName(RequestRouter):  # type: ignore[misc]
    """
    Sends each group to the replica that it names, and to any other where that one has gone.

    Only the gateway knows which replica holds an image's features, and how much it has sent to each.
    """

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Take the new replicas, and tell the gateway."""
        super().update_replicas(replicas)
        running.tell(self._deployment_id.name, [each.replica_id.unique_id for each in replicas])

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        """Candidates, the best first."""
        arguments: dict[str, Any] = pending_request.kwargs if pending_request else {}
        named = [each for each in candidate_replicas if each.replica_id.unique_id == arguments.get(TARGET)]
        others = [each for each in candidate_replicas if each not in named]
        return [rank for rank in (named, others) if rank]
