"""deploy/compose.yaml, as its tests read it."""

import yaml

from tests.support.paths import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES = COMPOSE["services"]
METRICS_PORT = 9000


def mounts(service: str) -> list[tuple[str, str]]:
    """Return source and target of each of a service's mounts."""
    pairs = (each.split(":") for each in SERVICES[service].get("volumes", []))
    return [(source, target) for source, target, *_ in pairs]
