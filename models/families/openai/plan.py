"""The plan of a model behind an API for `--check`."""

from models.core.family import Plan
from models.core.settings import RemoteSettings


def plan(settings: RemoteSettings) -> Plan:
    """Return the names of the model and its server, without a request."""
    return Plan(settings.model, settings.base_url, remote=True)
