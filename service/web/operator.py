"""The operator's port: the Prometheus metrics, and changes of models, without keys."""

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Forbidden, UnsupportedMediaType
from service.core.settings.hosts import parse
from service.web.app import App
from service.web.auth.keys import KeyFile
from service.web.edge import Edge
from service.web.routes import lifecycle
from service.web.server.incoming import Bodies
from service.wiring.bootstrap import Service


def operator_app(service: Service, bodies: Bodies) -> ASGIApp:
    """Build the app; *bodies* are limited together with the main port's."""
    metrics, models = service.instruments.app(), App(service, [lifecycle.router])
    models.state.operators = True

    async def own(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":  # or HEAD, which the edge serves as GET
            check_origin(Headers(scope=scope), service.settings.server.operator_hosts)
        await models(scope, receive, send)

    edge = Edge(own, service, KeyFile(None), bodies)

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
    if not is_loopback(name := name_of(host)) and name not in {parse(each)[0] for each in hosts}:
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
    except ValueError:  # an address in brackets that is none
        return ""


def is_loopback(name: str) -> bool:
    """Return True for `localhost`, 127.0.0.0/8 and ::1."""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
