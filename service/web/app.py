"""The apps of the public API and of the operator's port."""

import logging
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Forbidden, UnsupportedMediaType
from service.core.settings.sections import host_and_port
from service.observability.build import commit
from service.web.dialects.registry import routers
from service.web.dialects.scoring import DialectScoring
from service.web.edge import App, Cors, Edge
from service.web.keys import KeyFile, Quotas
from service.web.routes import decide, health, labels, models, pages, questions, scoring
from service.web.server.body import Bodies
from service.web.wire.types import requests_with
from service.wiring.bootstrap import Service

log = logging.getLogger("scoregate.service")


def create_app(service: Service, *, keyless: bool = False) -> App:
    """
    Build the public API.

    Args:
        keyless: require no key, whatever the settings say; each caller may change models, too.

    Raises:
        SettingsError: the file of keys cannot be used.
    """
    server, demo = service.settings.server, service.settings.demo_models
    if demo and not keyless:  # the answers say so, too
        log.warning("demo models: %s; their scores mean nothing for real pictures", ", ".join(demo))
    shown = [
        scoring.router,
        decide.router,
        labels.router,
        questions.router,
        *routers(service.settings.dialects.enabled),
    ]
    shown += [models.router, models.changes, health.router, pages.router]
    if server.metrics_port is None:
        shown.append(health.scraped)
    commit()  # the checkout may change later, so the commit of the code that runs is read now
    app = App(service, shown, pages.routes)
    app.state.requests = requests_with(service.metrics, server.max_items)
    app.state.dialects = DialectScoring(service)
    app.state.bodies = Bodies(server, service.memory, service.parser)
    app.state.quotas = Quotas(service.clock)
    app.state.operators = keyless
    file = None if keyless else server.api_keys_file
    keys = KeyFile(file, service.clock) if file else None
    app.entry = Edge(app.dispatch, service, keys, app.state.bodies, app.error_format)
    if server.cors_origins:  # pages of other origins must be able to read the edge's errors
        app.entry = Cors(app.entry, origins=server.cors_origins)
    return app


def operator_app(service: Service, bodies: Bodies) -> ASGIApp:
    """Build the app; *bodies* is shared with the main port."""
    metrics, changing = service.instruments.app(), App(service, [models.changes])
    changing.state.operators = True

    async def own(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":  # the edge serves HEAD as GET
            check_origin(Headers(scope=scope), service.settings.server.operator_hosts)
        await changing(scope, receive, send)

    edge = Edge(own, service, None, bodies)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        changes = scope.get("path", "").startswith("/models/")
        await (edge if changes else metrics)(scope, receive, send)

    return app


def check_origin(headers: Headers, hosts: Collection[str]) -> None:
    """
    Refuse a change of models that a page of another origin may have sent.

    The port has no keys, and a browser on the operator's machine reaches it.

    Args:
        hosts: of the port, besides loopback.

    Raises:
        Forbidden: another `Host`, as of a page whose name was pointed to this address; or a foreign origin.
        UnsupportedMediaType: no JSON.  A page may send other types without a preflight request.
    """
    host = headers.get("host", "")
    if not is_loopback(name := name_of(host)) and name not in {host_and_port(each)[0] for each in hosts}:
        raise Forbidden(f"the host {host[:80]!r} is neither loopback nor listed in server.operator_hosts")
    origins = {each.partition("://")[2] for each in headers.getlist("origin")}
    if origins - {host} or set(headers.getlist("sec-fetch-site")) - {"same-origin", "none"}:
        raise Forbidden("a page of another origin must not change models")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType(
            "send a JSON body, such as {}, with the header Content-Type: application/json"
        )


def name_of(host: str) -> str:
    """Return the name or address in a `Host` header, in lower case; empty if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # the brackets hold no address
        return ""


def is_loopback(name: str) -> bool:
    """Return True for `localhost`, 127.0.0.0/8 and ::1."""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
