"""The app of the demo profile with all dialects, around no models: what it declares is there at once."""

from functools import cache

from service.core.settings.dialects import OVER_HTTP
from service.core.settings.tree import Settings
from service.web.app import create_app
from service.web.dialect_ports import ports
from service.web.edge import App
from service.wiring.bootstrap import Service
from service.wiring.load import load_settings


def settings(**dialects: object) -> Settings:
    """Return the settings of the demo profile, whatever the environment has."""
    shipped = load_settings(None, {})
    return shipped.model_copy(update={"dialects": shipped.dialects.model_copy(update=dialects)})


@cache
def public_app() -> App:
    """Return the app of the public API alone."""
    return create_app(Service(settings(), {}), keyless=True)


def service_with_all() -> Service:
    """Return the service after its apps have declared the routes of the API and of all dialects."""
    service = Service(settings(enabled=[*OVER_HTTP], port=1, pickle_port=2), {})
    app = create_app(service, keyless=True)
    ports(service, app.state.dialects, app.state.bodies)
    return service
