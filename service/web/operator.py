"""The operator's port: the Prometheus metrics, and changes of models, without keys."""

from starlette.types import ASGIApp, Receive, Scope, Send

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
    edge = Edge(models, service=service, keys=KeyFile(None), bodies=bodies)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        changes = scope.get("path", "").startswith("/models/")
        await (edge if changes else metrics)(scope, receive, send)

    return app
