"""The dialects' own ports: apps without keys, since trainers send none."""

from dataclasses import dataclass

from starlette.types import ASGIApp

from service.web.app import App
from service.web.auth.keys import KeyFile
from service.web.dialects.pickled.app import PickleApp
from service.web.dialects.registry import routers
from service.web.dialects.scoring import Dialects
from service.web.edge import Edge
from service.web.routes import health
from service.web.server.incoming import Bodies
from service.wiring.bootstrap import Service


@dataclass(frozen=True, slots=True)
class DialectPort:
    """A port, its setting and its app."""

    setting: str
    host: str
    port: int
    app: ASGIApp


def ports(service: Service, dialects: Dialects, bodies: Bodies) -> list[DialectPort]:
    """Build the apps of the ports in the settings; *bodies* are limited together with the main port's."""
    settings = service.settings.dialects
    apps: dict[str, tuple[int | None, ASGIApp]] = {
        "dialects.port": (settings.port, over_http(service, dialects)),
        "dialects.pickle_port": (settings.pickle_port, PickleApp(service, dialects)),
    }
    return [
        DialectPort(setting, settings.host, port, behind_edge(app, service, bodies))
        for setting, (port, app) in apps.items()
        if port is not None
    ]


def over_http(service: Service, dialects: Dialects) -> App:
    """Build the app with the dialects that are enabled and the probes; no other route of the service."""
    app = App(service, [health.router, *routers(service.settings.dialects.enabled, own_port=True)])
    app.state.dialects = dialects
    return app


def behind_edge(app: ASGIApp, service: Service, bodies: Bodies) -> ASGIApp:
    """Wrap *app* in the edge, with the limits of all requests."""
    return Edge(app, service=service, keys=KeyFile(None), bodies=bodies)
