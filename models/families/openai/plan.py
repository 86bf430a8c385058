"""What `--check` says of a model behind an API."""

from models.core.family import Plan
from models.core.settings import RemoteSettings


def plan(settings: RemoteSettings) -> Plan:
    """The model as its server calls it, and the server; neither is asked."""
    return Plan(settings.model, settings.base_url, remote=True)
