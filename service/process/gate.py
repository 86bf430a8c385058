"""The service within another process, for `scoregate.load`: the public app without a port."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from models.core.contract import CheckpointAway, CheckpointError, Temporary
from models.families.registry import PluginError
from service.core.concurrency.cpu_threads import on_thread
from service.core.errors import NotReady, ScoregateError
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.common.contract import Metric
from service.metrics.common.registry import metrics, styled
from service.process.exchange import imported
from service.process.model_names import Tree, profile_of
from service.questions.stores.opening import check_store
from service.scoring.policies import served_policies
from service.serving.handle import Handle
from service.serving.loading import load_models
from service.serving.ray.cluster import connected
from service.web.app import create_app
from service.web.endpoints import shown
from service.web.server.body import ARRIVED_STATE, parse
from service.web.wire.decide import DecideRequest
from service.web.wire.requests import QuestionsRequest
from service.web.wire.types import Requests
from service.wiring.bootstrap import Service
from service.wiring.load import (
    DEMO_PROFILE,
    PROFILES,
    declared,
    file_of,
    for_metrics,
    meant,
    profile_names,
    settings_of,
    tree_of,
)

log = logging.getLogger("scoregate.gate")

DEMO = "demo"
FORM = "multipart/form-data"
OWNER = {  # defaults where every caller is the operator
    "SCOREGATE_JUDGE__ALLOW_INLINE": "true",
    "SCOREGATE_CHECKLISTS__ALLOW_INLINE": "true",
}
TEMPORARY_ERRORS = (Temporary, NotReady)
FAULTS = (SettingsError, PluginError, CheckpointError, ScoregateError)
"""
What opening raises if the models cannot be served: for now, and until a person changes something.  Each has
one line for people.
"""


class GateResponse(NamedTuple):
    """A whole response; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


def settings_for(
    names: Sequence[str],
    devices: Sequence[str],
    dtype: str,
    policies: str = "",
    metrics: Mapping[str, Mapping[str, Any]] | None = None,
) -> Settings:
    """
    Return the settings of a profile, or of models by their names, with the environment's overrides.

    Args:
        names: "demo", the name or the file of a profile, or one or several models as `--model` takes them.
        devices, dtype: of models by name.
        policies: a TOML file, whose tables `policies.NAME` are added.
        metrics: the options of those that will be scored, if known; other metrics have no models then.

    Raises:
        SettingsError: a profile with other names, or one of the errors of `settings_of` and `for_metrics`.
        CheckpointError: a name is not a model.
    """
    profiles = [name for name in names if is_profile(name)]
    source: Path | str
    if not profiles:
        tree, source = named(names, devices, dtype), "scoregate.load"
    elif len(names) > 1 or devices or dtype:
        raise SettingsError(f"{profiles[0]} is a profile, with models, devices and dtypes of its own")
    else:
        source = file_of(DEMO_PROFILE if names[0] == DEMO else Path(names[0]))
        tree = tree_of(source)
    if policies:
        tree["policies"] = {**tree.get("policies", {}), **tables_of(Path(policies))}
        source = f"{source}, {policies}"
    settings = settings_of(tree, source, defaults=OWNER)
    return for_metrics(settings, metrics) if metrics else settings


def named(names: Sequence[str], devices: Sequence[str], dtype: str) -> Tree:
    """Return the profile of models by their names.  Raises as `settings_for`; a mistyped profile is named."""
    try:
        return profile_of(names, {}, devices, dtype)
    except CheckpointAway:
        raise
    except CheckpointError as exc:
        hint = next(filter(None, (meant(name, profile_names()) for name in names)), "")
        raise CheckpointError(f"{str(exc).removeprefix('--model ')}{hint}") from exc


def tables_of(file: Path) -> dict[str, Any]:
    """Return the tables `policies.NAME` of a file.  Raises `SettingsError`."""
    if not file.is_file():
        raise SettingsError(f"{file}: there is no such file")
    found = tree_of(file).get("policies")
    if not isinstance(found, dict) or not found:
        raise SettingsError(f"{file}: has no table [policies.NAME]")
    return found


def policies_in(names: Sequence[str], file: str = "") -> dict[str, dict[str, Any]]:
    """
    Return the policies of a profile and of a *file* by name, as `GET /policies` has them but for their ids.

    Raises as `settings_for`.
    """
    settings = settings_for(names, (), "", file)
    found = served_policies(*declared(settings), settings.policies)
    return {
        name: {"id": name, **each.expressions, "options": shown(each.options)} for name, each in found.items()
    }


def import_questions(names: Sequence[str], file: Path) -> int:
    """
    Put the question sets of a JSON Lines file into the store of the models of these names.

    Returns:
        The number of sets that are not valid.

    Raises as `settings_for`.
    """
    return asyncio.run(imported(settings_for(names, (), ""), file, "jsonl"))["refused"]


def known_metrics(settings: Settings | None = None) -> Mapping[str, Metric]:
    """Return every metric by name; by the *settings* of a profile with its question styles."""
    return styled(metrics(), settings) if settings else metrics()


def on_cluster(address: str) -> AbstractContextManager[None]:
    """Make this process a driver of a Ray cluster, as `connected`."""
    return connected(address)


def is_profile(name: str) -> bool:
    """Return True for the name of a shipped profile, and for a TOML file."""
    return name.endswith(".toml") or (PROFILES / f"{name}.toml").is_file()


class Gate:
    """
    The app of a service in this process.

    Args:
        say: called with one line about what is loaded.
    """

    def __init__(self, service: Service, say: Callable[[str], object]) -> None:
        self._service, self._say = service, say
        self._app = create_app(service, keyless=True)  # each caller is this process

    async def load_for(
        self, path: str, content_type: str, content: bytes, metrics: Sequence[str] = ()
    ) -> None:
        """
        Load the models that a request needs, and that were not loaded when the service was opened.

        The request may be sent however long that takes: it has its own time then.

        Args:
            metrics: of the request, if the caller has them; its JSON is not read if their models are loaded.

        Raises `TEMPORARY_ERRORS` or one of `FAULTS`.
        """
        service, used = self._service, self._service.engine.catalog.used
        handles = [handle for name in metrics for handle in used.get(name, ())]
        if not any(each.backend.presence.awaited for each in handles or service.runtime.handles.values()):
            return
        needed = needed_by(service, self._app.state.requests, path, content_type, content, metrics)
        if awaited := [each for each in needed.values() if each.backend.presence.awaited]:
            self._say(f"loading {', '.join(each.name for each in awaited)}")
            for handle in awaited:
                await service.lifecycle.load_awaited(handle)

    async def exchange(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> GateResponse:
        """
        Return the app's response to one request.  If the task is cancelled, so is the work.

        Args:
            path: with a query, if any.
        """
        arrived, status = False, 0
        path, _, query = path.partition("?")
        body, found = bytearray(), dict[str, str]()

        async def receive() -> MutableMapping[str, Any]:
            nonlocal arrived
            if arrived:  # the caller stays until its task is cancelled
                await asyncio.get_running_loop().create_future()
            arrived = True
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                found.update(
                    (name.decode("latin-1"), text.decode("latin-1")) for name, text in message["headers"]
                )
            else:
                body.extend(message.get("body", b""))

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()
            ],
            "client": None,
            "server": None,
            "state": {ARRIVED_STATE: True},
        }
        await self._app(scope, receive, send)
        return GateResponse(status, found, bytes(body))


@asynccontextmanager
async def open_gate(
    names: Sequence[str],
    devices: Sequence[str],
    dtype: str,
    policies: str = "",
    metrics: Mapping[str, Mapping[str, Any]] | None = None,
    say: Callable[[str], object] = lambda line: None,
) -> AsyncIterator[Gate]:
    """
    Open the service in this event loop, and yield it.

    Models are loaded on a thread: those of *metrics* now, others when a request needs them.  A device that
    fails permanently is logged; its calls fail from then on.

    Args:
        say: called with one line about what is loaded.
        others: see `settings_for`.

    Raises `TEMPORARY_ERRORS` or one of `FAULTS`.
    """

    def loaded() -> tuple[Settings, Mapping[str, Any]]:
        settings = settings_for(names, devices, dtype, policies, metrics)
        check_store(settings.cache)
        if metrics:
            say(f"loading {', '.join(settings.models) or 'no model'} for {', '.join(metrics)}")
        return settings, load_models(settings, later=not metrics)

    settings, models = await on_thread(loaded)
    async with Service(
        settings, models, lambda reason: log.critical("a device broke: %s", reason)
    ) as service:
        yield Gate(service, say)


# --- the models that a request needs, read from its JSON before the app reads it ---


def needed_by(
    service: Service,
    requests: Requests,
    path: str,
    content_type: str,
    content: bytes,
    metrics: Sequence[str],
) -> dict[str, Handle]:
    """Return the models that a request may use, by name; none if the app refuses it."""
    path = path.partition("?")[0]
    try:
        if path == "/questions":
            wanted: QuestionsRequest = parse(json_in(content_type, content), requests.questions)
            _, writer = service.engine.catalog.style(wanted.style, {})
            return {writer.name: writer} if writer else {}
        named = [*metrics_of(service, requests, path, json_in(content_type, content), metrics)]
    except ScoregateError:
        return {}
    used = service.engine.catalog.used
    return {handle.name: handle for name in named for handle in used.get(name, ())}


def metrics_of(
    service: Service, requests: Requests, path: str, body: bytes, metrics: Sequence[str]
) -> Iterator[str]:
    """Yield the metrics of a request.  Raises `ScoregateError` if the body is not valid."""
    match path:
        case "/score":
            yield from parse(body, requests.score).asked().values()
        case "/rank":
            yield from parse(body, requests.rank).metrics.values()
        case "/compare":
            yield parse(body, requests.compare).named
        case "/decide":
            decide: DecideRequest = parse(body, requests.decide)
            for name in decide.named.values():
                yield from service.policies[name].rules.metrics if name in service.policies else ()
        case "/policies":  # their ids name the models
            for policy in service.policies.values():
                yield from policy.rules.metrics
        case "/models":  # they are in no body
            yield from metrics


def json_in(content_type: str, content: bytes) -> bytes:
    """Return the JSON of a body; a form of the client begins with it."""
    if not content_type.startswith(FORM):
        return content
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    begin = content.find(b"\r\n\r\n") + 4
    return content[begin : content.find(b"\r\n--" + boundary, begin)]
