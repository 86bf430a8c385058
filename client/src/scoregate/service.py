"""The service that scores, as arguments name it, or models of this process in its place."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import scoregate
from scoregate.records import BadInput


@dataclass(frozen=True, kw_only=True)
class Service:
    """
    Where the scores come from; other processes make a client of it, too.

    Attributes:
        base_url, api_key: as of `scoregate.Client`.
        local: models that each process loads in place of a service, see `scoregate.load`; without an address
            and a key, by default those of the variable SCOREGATE_LOCAL.
        timeout_s: of a call with its retries.
        strict: a score that the service warns about is an error.
    """

    base_url: str | None = None
    api_key: str | None = None
    local: Sequence[str] = ()
    timeout_s: float = 60.0
    strict: bool = False

    @property
    def models(self) -> list[str]:
        """The models to load; none of a service.  Raises `BadInput` for both."""
        given = {"--base-url": self.base_url, "--api-key": self.api_key}
        named = [name for name, value in given.items() if value is not None]
        if named and self.local:
            raise BadInput(f"--local and {named[0]}: models of this process have no address and no key")
        return [*self.local] or ([] if named else os.environ.get("SCOREGATE_LOCAL", "").split())

    def client(self, **more: Any) -> scoregate.Client:
        """
        Return a client, a context manager.

        Args:
            more: further arguments of `scoregate.Client`.

        Raises:
            BadInput: the address is not valid, or the server's package is not installed.
            ScoregateError: the models cannot be loaded.
        """
        more = {"timeout_s": self.timeout_s, "strict": self.strict, **more}
        try:
            if names := self.models:
                return scoregate.load(*names, **more)
            return scoregate.Client(self.base_url, api_key=self.api_key, **more)
        except (ValueError, ImportError) as exc:
            raise BadInput(str(exc)) from exc
