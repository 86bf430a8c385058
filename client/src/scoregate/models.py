"""The methods of the clients that score nothing: models, questions, health and version."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from scoregate.answers import question_set_of, question_sets_of, understood
from scoregate.connection import Connection
from scoregate.items import given
from scoregate.results import QuestionSet


class Models:
    """The methods of `scoregate.AsyncClient` that score nothing: models, questions, health and version."""

    timeout_s: float
    priority: str
    _connection: Connection

    async def models(self) -> dict[str, Any]:
        """Return the JSON of `GET /models`: models, metrics and limits."""
        return await self._get("/models")

    async def load_model(self, name: str, revision: str = "") -> dict[str, Any]:
        """
        Load a model again, or another *revision* of it; the key needs the right `models`.

        Requests that use the model are finished first.  If the other revision fails, the previous one is
        served.

        Returns:
            Name, state, and the bytes on its devices before and after.

        Raises:
            ValueError: this client has several addresses.
            Forbidden, NotFound, Conflict: see the service's errors.
            Invalid: there is no such revision, or models of this kind have one revision only.
            ModelFault: the model gives other numbers than before, and is not served.
        """
        return await self._change_model(name, "load", {"revision": revision} if revision else None)

    async def offload_model(self, name: str) -> dict[str, Any]:
        """Move the weights of a model to the host's memory; result and errors as for `load_model`."""
        return await self._change_model(name, "offload")

    async def unload_model(self, name: str) -> dict[str, Any]:
        """Drop the weights of a model; result and errors as for `load_model`."""
        return await self._change_model(name, "unload")

    async def _change_model(
        self, name: str, action: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        if len(self._connection.urls) > 1:
            raise ValueError(f"{action} changes one service: use a client of one address, not of several")
        path = f"/models/{quote(name, safe='')}/{action}"
        content = json.dumps(body or {}).encode()  # the operator's port takes nothing but JSON
        raw = await self._connection.call("POST", path, self.timeout_s, content)
        return understood(lambda: dict(raw))

    async def version(self) -> str:
        """Return the service's version, from its OpenAPI document."""
        raw = await self.openapi()
        return understood(lambda: str(raw["info"]["version"]))

    async def openapi(self) -> dict[str, Any]:
        """Return the service's OpenAPI document, with the schema of each metric's options."""
        return await self._get("/openapi.json")

    async def health(self) -> dict[str, Any]:
        """Return the JSON of `GET /health`: the metrics that are ready, and why others are not."""
        return await self._get("/health")

    async def ready(self) -> tuple[bool, dict[str, Any]]:
        """
        Return whether every required model serves, and the JSON of `GET /readyz`; without retries.

        Of several addresses one is enough.
        """
        return await self._connection.probe("/readyz", self.timeout_s)

    async def questions(
        self,
        prompts: Sequence[str] | str,
        style: str = "dsg",
        *,
        options: Mapping[str, Any] | None = None,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> list[QuestionSet]:
        """
        Return the question sets of prompts.

        The service's question LLM writes the missing sets; a set that could not be written has an `error`.

        Args:
            options: by metric; some change how a set is written.

        Raises:
            ScoregateError: no set could be written, or the request failed.
        """
        wanted = [prompts] if isinstance(prompts, str) else list(prompts)
        asked = given(
            prompts=wanted, style=style, options=options or None, priority=priority or self.priority
        )
        content = json.dumps(asked)
        time_s = self.timeout_s if timeout_s is None else timeout_s
        raw = await self._connection.call("POST", "/questions", time_s, content.encode())
        return understood(lambda: question_sets_of(raw, len(wanted)))

    async def question_set(self, id: str) -> QuestionSet:
        """Return a stored question set.  Raises `UnknownQuestionSet`."""
        raw = await self._get(f"/questions/{quote(id, safe='')}")
        return understood(lambda: question_set_of(raw))

    async def _get(self, path: str) -> dict[str, Any]:
        raw = await self._connection.call("GET", path, self.timeout_s)
        return understood(lambda: dict(raw))
