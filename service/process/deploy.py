"""`scoregate-server deploy`, and the same for KubeRay: the models of a profile on a cluster."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.observability.logs import configure_logging
from service.serving.ray.cluster import connected
from service.wiring.load import load_settings


def deploy(settings: Settings) -> int:
    """
    Start or update the models on the running cluster that the profile names, and wait until they serve.

    Raises:
        SettingsError: the profile names no running cluster, or a model cannot be placed or loaded there.
    """
    runtime = settings.runtime
    if runtime.kind != "ray" or runtime.address == "local":
        raise SettingsError('deploy needs kind = "ray" and the address of a running cluster in [runtime]')
    with connected(runtime.address):
        from service.serving.ray import deploy as ray

        ray.deploy(settings)
    print(f"deployed: {', '.join(settings.models)}")
    return 0


def build(arguments: Mapping[str, str]) -> Any:
    """Build the application of the profile `config`, for a config file of Ray Serve."""
    configure_logging()
    from service.serving.ray.deploy import application

    return application(load_settings(Path(arguments["config"])))
