"""Deployment of the application on the cluster that this process is connected to."""

import logging
import time

import ray
from ray import serve
from ray._private.state import available_resources_per_node
from ray.serve.schema import ApplicationStatus, ApplicationStatusOverview, DeploymentStatusOverview

from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.serving.ray.application import APPLICATION, application
from service.serving.ray.packing import has_room, unplaced

log = logging.getLogger("scoregate.ray")

POLL_S, LOG_EVERY_S = 0.25, 15.0


def deploy(settings: Settings) -> None:
    """
    Deploy the models of *settings*, and wait until they serve.

    Ray replaces the replicas of models whose settings have changed, and keeps all others.  If the cluster has
    room for one more replica, new ones start before old ones stop; otherwise afterwards, one by one.

    Raises:
        SettingsError: a replica fits on no node, a model cannot be loaded, or not in `start_timeout_s`.
    """
    if reason := unplaced(settings, [node["Resources"] for node in ray.nodes() if node["Alive"]]):
        raise SettingsError(reason)
    app = application(settings, surge=has_room(settings, list(available_resources_per_node().values())))
    serve.start(proxy_location="Disabled")
    target = serve.RunTarget(app, name=APPLICATION, route_prefix=None)
    serve.run_many([target], wait_for_applications_running=False)
    wait(settings.runtime.start_timeout_s)


def deployed() -> set[str]:
    """Return the names of the deployed models."""
    found = overview()
    return set(found.deployments) if found else set()


def overview() -> ApplicationStatusOverview | None:
    """Return the status of the application; None if it is not deployed."""
    return serve.status().applications.get(APPLICATION)


def wait(timeout_s: float) -> None:
    """Wait until the application runs.  Raises `SettingsError` if it fails or exceeds *timeout_s*."""
    began = logged = time.monotonic()
    while True:
        found = overview()
        status = found.status if found else ApplicationStatus.NOT_STARTED
        if found and status == ApplicationStatus.RUNNING:
            return
        now = time.monotonic()
        states = [f"{name}: {state(each)}" for name, each in found.deployments.items()] if found else []
        if status == ApplicationStatus.DEPLOY_FAILED or now - began > timeout_s:
            raise SettingsError(f"the models could not be deployed: {'; '.join(states) or status.value}")
        if now - logged > LOG_EVERY_S:
            logged = now
            log.info("deploying, %d s so far: %s", now - began, "; ".join(states))
        time.sleep(POLL_S)


def state(deployment: DeploymentStatusOverview) -> str:
    """Return the status of a deployment and the first sentence of its message."""
    message = " ".join(deployment.message.split()).partition(". ")[0]
    return f"{deployment.status.value.lower()} {message}".strip()
