"""The dialects' own ports: apps without keys, since trainers send none."""

from dataclasses import dataclass

from starlette.types import ASGIApp

from service.web.dialects.pickled.app import PickleApp, failed
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
    found = []
    if settings.port is not None:
        app = over_http(service, dialects)
        edge = Edge(app, service, None, bodies, app.error_format)
        found.append(DialectPort("dialects.port", settings.host, settings.port, edge, None))
    if settings.pickle_port is not None:
        pickles = PickleApp(service, dialects)
        edge = Edge(pickles, service, None, bodies, lambda scope: failed)
        found.append(DialectPort("dialects.pickle_port", settings.host, settings.pickle_port, edge, failed))
    return found


def over_http(service: Service, dialects: DialectScoring) -> App:
    """Build the app with the dialects that are enabled and the probes; no other route of the service."""
    app = App(service, [health.router, *routers(service.settings.dialects.enabled, own_port=True)])
    app.state.dialects = dialects
    return app
