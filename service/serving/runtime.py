"""What the engine knows of the models: a handle by metric and role, and nothing else."""

from collections.abc import Mapping
from typing import Protocol, Self

from service.serving.handle import Handle


class Runtime(Protocol):
    """
    All configured models, wherever they run.  It is an async context manager: entered, it serves.

    Attributes:
        handles: by configured name.
    """

    @property
    def handles(self) -> Mapping[str, Handle]: ...

    def handle(self, metric: str, role: str) -> Handle | None:
        """The handle that serves *role* for *metric*; None where no model does."""
        ...

    def stalled(self) -> bool:
        """Whether work waits and no batch has finished for too long: the process should be restarted."""
        ...

    async def __aenter__(self) -> Self:
        """Warm the models and start to serve."""
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Take nothing new, answer what waits, and stop."""
        ...
