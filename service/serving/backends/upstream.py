"""Requests to a server, and calls that one request answers together."""

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from itertools import chain
from typing import Any, NamedTuple

import orjson

from models.core.contract import Post, Prepared, RemoteModel, UpstreamError
from service.core.concurrency.tasks import Tasks
from service.core.http import httpx

ATTEMPTS = 3
BACKOFF_S = 0.25  # every try doubles it
CONNECT_S = 5.0
MAX_BYTES = 8 * 2**20  # bytes of an answer
TEMPORARY_STATUSES = {429, 502, 503, 504}  # statuses that are retried
NO_ROUTE_STATUSES = {404, 405}
EXPLAINED_STATUSES = {400, 413, 422, 501}  # statuses whose message is about the request: no paths, no keys
MAX_CAUSE = 300  # characters of such a message
CALL_FAULT_STATUSES = {400, 413, 422}  # statuses with which a server rejects the content of a call
COLLECT_S = 0.005  # an answer takes tenths of a second


class ServerFailed(UpstreamError):
    """
    A server did not answer, or not with a JSON object.

    Attributes:
        cause: the server's message, which may repeat the call's texts: for its caller, and not for `/health`.
    """

    def __init__(self, detail: str, status: int = 0, cause: str = "") -> None:
        super().__init__(detail, status)
        self.cause = cause


class Unreachable(ServerFailed):
    """No connection, or it broke before the answer ended: the server may have restarted."""


@cache
def certificates() -> ssl.SSLContext:
    """Return httpx's own certificates, read once per process: that takes 30 ms."""
    return httpx.create_ssl_context(trust_env=False)


class UpstreamResponse(NamedTuple):
    """The answer to one request, whatever its status."""

    status: int
    headers: httpx.Headers
    body: bytes


class Upstream:
    """
    A server's address, key and connections.

    Requests go to *base_url* only: no redirects, no proxies from the environment.  Answers are read without
    a content encoding and up to `MAX_BYTES`.  Checks have connections of their own: in the pool of calls
    they would wait behind these, and a busy server would seem to be down.

    Args:
        base_url: including `/v1`.
        timeout_s: for one request with all its retries.
        max_in_flight: the number of connections of calls.
        transport: replaces the network (tests).
        sleep: replaces the wait between retries, for tests.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "",
        timeout_s: float,
        max_in_flight: int,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._timeout_s, self._sleep = timeout_s, sleep
        self._has_sleep_route = True
        self._base = httpx.URL(base_url.rstrip("/") + "/")
        key = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._calls, self._checks = (
            httpx.AsyncClient(
                headers={"Accept-Encoding": "identity", **key},
                timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_S, timeout_s)),
                limits=httpx.Limits(max_connections=connections),
                transport=transport,
                trust_env=False,
                verify=certificates(),
            )
            for connections in (max_in_flight, None)
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._calls.aclose()
        await self._checks.aclose()

    async def post(
        self,
        path: str,
        body: dict[str, Any],
        headers: Mapping[str, str] | None = None,
        *,
        check: bool = False,
    ) -> dict[str, Any]:
        """
        Return the JSON object that the server answers.

        Temporary failures (no connection, overload) are retried within `timeout_s`.

        Args:
            check: the call checks the server, and does not wait for a connection of other calls.

        Raises:
            ServerFailed: with the status of the last answer, if there was one.
        """
        content, client = orjson.dumps(body), self._checks if check else self._calls
        sent = {"Content-Type": "application/json", **(headers or {})}
        try:
            async with asyncio.timeout(self._timeout_s):
                for wait in (BACKOFF_S * 2**n for n in range(ATTEMPTS - 1)):
                    try:
                        return await self._object(client, "POST", path, content, sent)
                    except UpstreamError as error:
                        if error.status not in TEMPORARY_STATUSES and error.status != 0:
                            raise
                    await self._sleep(wait * random.uniform(0.5, 1.5))
                return await self._object(client, "POST", path, content, sent)
        except TimeoutError as exc:
            raise ServerFailed(f"did not answer within {self._timeout_s:g} s") from exc

    async def command(self, path: str) -> None:
        """Post nothing to *path*, once, and ignore the response's body.  Raises `ServerFailed`."""
        answer = await self.look(path, "POST")
        if not httpx.codes.is_success(answer.status):
            raise ServerFailed(f"answered {path} with {answer.status}", answer.status)

    async def look(self, path: str, method: str = "GET") -> UpstreamResponse:
        """Return the answer to one request that has no body.  Raises `ServerFailed` if there is none."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._answer(self._checks, method, path)
        except TimeoutError as exc:
            raise Unreachable("cannot be reached (TimeoutError)") from exc

    async def missing(self, model: str) -> str:
        """Return why *model* cannot be called now; empty if it can."""
        try:
            async with asyncio.timeout(min(CONNECT_S, self._timeout_s)):
                listed = (await self._object(self._checks, "GET", "models")).get("data")
                if not isinstance(listed, list):
                    return "returned no list of models"
                entries = [entry for entry in listed if isinstance(entry, dict) and entry.get("id") == model]
                if not entries:
                    return f"serves no model named {model}"
                return "is asleep" if await self._sleeps(entries[0]) else ""
        except TimeoutError:
            return "does not answer"
        except ServerFailed as error:
            self._has_sleep_route = True  # the next server may have it
            return str(error)

    async def _sleeps(self, entry: Mapping[str, Any]) -> bool:
        """Return True if a vLLM reports that it has offloaded the weights of a model that it lists."""
        if not self._has_sleep_route or entry.get("owned_by") != "vllm":
            return False
        try:
            found = await self._object(self._checks, "GET", "../is_sleeping")
            return found.get("is_sleeping") is True
        except ServerFailed as error:
            if error.status not in NO_ROUTE_STATUSES:
                raise
            self._has_sleep_route = False
            return False

    async def _object(
        self,
        client: httpx.AsyncClient,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object of one request's answer.  Raises `ServerFailed`."""
        status, _, body = await self._answer(client, method, path, content, headers)
        if status != HTTPStatus.OK:
            raise ServerFailed(f"returned status {status}", status, cause_of(status, body))
        try:
            parsed = orjson.loads(body)
        except orjson.JSONDecodeError as exc:
            raise ServerFailed("returned something that is not JSON", status) from exc
        if not isinstance(parsed, dict):
            raise ServerFailed("returned something that is not a JSON object", status)
        return parsed

    async def _answer(
        self,
        client: httpx.AsyncClient,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> UpstreamResponse:
        """Return the answer to one request.  Raises `Unreachable`, `ServerFailed` if it is not read."""
        try:
            url = self._base.join(path)
            async with client.stream(method, url, content=content, headers=headers) as answer:
                status, read = answer.status_code, bytearray()
                if answer.headers.get("Content-Encoding", "").strip().lower() not in ("", "identity"):
                    raise ServerFailed("sent its answer with a Content-Encoding, against the request", status)
                async for chunk in answer.aiter_bytes():
                    read += chunk
                    if len(read) > MAX_BYTES:
                        raise ServerFailed(f"returned more than {MAX_BYTES >> 20} MiB", status)
        except httpx.HTTPError as exc:
            raise Unreachable(f"cannot be reached ({type(exc).__name__})") from exc
        return UpstreamResponse(status, answer.headers, bytes(read))


def cause_of(status: int, content: bytes) -> str:
    """Return the message of a rejection by OpenAI, vLLM or SGLang; empty for other statuses and bodies."""
    if status not in EXPLAINED_STATUSES:
        return ""
    try:
        parsed = orjson.loads(content)
    except orjson.JSONDecodeError:
        return ""
    match parsed:
        case {"error": {"message": str(message)}} | {"message": str(message)}:
            return " ".join(message.split())[:MAX_CAUSE]
    return ""


def explained(error: Exception) -> str:
    """Return the text of *error*, with the server's message if there is one."""
    cause = error.cause if isinstance(error, ServerFailed) else ""
    return f"{error}: {cause}" if cause else str(error)


@dataclass(eq=False, slots=True)
class Joint:
    """Calls that are collected for one request.  An urgent one's *post* sends it, or the first one's."""

    post: Post
    urgent: bool
    calls: list[Prepared] = field(default_factory=list)
    work: "asyncio.Task[Sequence[Any]] | None" = None


class Joined:
    """
    Sends calls that the model answers together as one request: those that start within `COLLECT_S` seconds.

    A request goes on if some of its callers leave.  If the server rejects its content, each half is sent by
    itself, until the calls at fault are alone.

    Args:
        sleep: waits for further calls (tests).
    """

    def __init__(
        self,
        model: RemoteModel,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model, self._most, self._sleep = model, model.most_together, sleep
        self._open: dict[str, Joint] = {}
        self._sending = Tasks()

    async def aclose(self) -> None:
        """Cancel the requests that are sent."""
        await self._sending.cancel()

    async def answer(self, call: Prepared, post: Post, *, urgent: bool = False) -> Any:
        """Return the outcome of *call*.  Raises what *post* raises, which may send those of others, too."""
        key = self._model.together(call)
        if not key:
            return await self._model.answer(call, post)
        joint = self._open.get(key)
        if joint is None:
            joint = self._open[key] = Joint(post, urgent)
            joint.work = self._sending.start(self._send(key, joint))
            joint.work.add_done_callback(retrieved)
        if urgent and not joint.urgent:
            joint.post, joint.urgent = post, True
        place = len(joint.calls)
        joint.calls.append(call)
        if len(joint.calls) >= self._most:
            del self._open[key]  # the next call begins another one
        assert joint.work is not None
        outcome = (await asyncio.shield(joint.work))[place]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _send(self, key: str, joint: Joint) -> Sequence[Any]:
        """Collect calls, and send them."""
        if self._most > 1:
            await self._sleep(COLLECT_S)
        if self._open.get(key) is joint:
            del self._open[key]
        return await self._answers(joint.calls, joint.post)

    async def _answers(self, calls: Sequence[Prepared], post: Post) -> Sequence[Any]:
        """Return the outcome of each call, or its error."""
        try:
            return await self._model.answer_all(calls, post)
        except UpstreamError as error:
            if len(calls) == 1 or error.status not in CALL_FAULT_STATUSES:
                return [error] * len(calls)
        half = len(calls) // 2
        halves = await asyncio.gather(*(self._answers(each, post) for each in (calls[:half], calls[half:])))
        return [*chain.from_iterable(halves)]


def retrieved(task: "asyncio.Task[Any]") -> None:
    """Retrieve the exception of a request whose callers have all left."""
    if not task.cancelled():
        task.exception()
