"""The dialects' own ports: apps without keys, since trainers send none."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Scope

from service.web.dialects.registry import dialects as declared
from service.web.dialects.registry import routers
from service.web.dialects.scoring import DialectScoring
from service.web.edge import App, Edge
from service.web.problems import ErrorFormat
from service.web.routes import health
from service.web.server.body import Bodies
from service.wiring.bootstrap import Service


@dataclass(frozen=True, slots=True)
class DialectPort:
    """
    A port, its setting and its app.

    Attributes:
        error_format: of errors before a request has a path; None for a problem.
    """

    setting: str
    host: str
    port: int
    app: ASGIApp
    error_format: ErrorFormat | None


def ports(service: Service, dialects: DialectScoring, bodies: Bodies) -> list[DialectPort]:
    """Build the apps of the ports in the settings; *bodies* is shared with the main port."""
    settings = service.settings.dialects

    def place(setting: str, port: int, edge: Edge, error_format: ErrorFormat | None) -> DialectPort:
        return DialectPort(f"dialects.{setting}", settings.host, port, edge, error_format)

    found = []
    if settings.port is not None:
        app = over_http(service, dialects)
        edge = Edge(app, service, None, bodies, app.error_format)
        found.append(place("port", settings.port, edge, None))
    for dialect in declared().values():
        setting = f"{dialect.name}_port"
        if dialect.app and (port := getattr(settings, setting)) is not None:
            edge = Edge(dialect.app(service, dialects), service, None, bodies, always(dialect.error_format))
            found.append(place(setting, port, edge, dialect.error_format))
    return found


def always(error_format: ErrorFormat | None) -> Callable[[Scope], ErrorFormat | None]:
    """Return a function that returns *error_format* for every path."""
    return lambda scope: error_format


def over_http(service: Service, dialects: DialectScoring) -> App:
    """Build the app with the dialects that are enabled and the probes; no other route of the service."""
    app = App(service, [health.router, *routers(service.settings.dialects.enabled, own_port=True)])
    app.state.dialects = dialects
    return app
