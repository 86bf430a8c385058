"""Start or update the application on the cluster that this process is connected to."""

import logging
import time

import ray
from ray import serve
from ray.serve.schema import ApplicationStatus, ApplicationStatusOverview, DeploymentStatusOverview

from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.serving.ray.application import APPLICATION, application
from service.serving.ray.packing import unplaced

log = logging.getLogger("scoregate.ray")

POLL_S, SAY_EVERY_S = 0.25, 15.0


def deploy(settings: Settings) -> None:
    """
    Deploy the models of *settings*, and wait until they serve.

    Ray replaces the replicas of models whose settings have changed one after the other, and leaves the
    others as they are.

    Raises:
        SettingsError: a replica fits on no node, a model cannot be loaded, or not in `start_timeout_s`.
    """
    app = application(settings)
    if where := unplaced(settings, [node["Resources"] for node in ray.nodes() if node["Alive"]]):
        raise SettingsError(where)
    serve.start(proxy_location="Disabled")
    serve._run(app, name=APPLICATION, route_prefix=None, _blocking=False)
    wait(settings.runtime.start_timeout_s)


def deployed() -> set[str]:
    """The models that have been deployed on the cluster that this process is connected to."""
    found = overview()
    return set(found.deployments) if found else set()


def overview() -> ApplicationStatusOverview | None:
    """How far the application is, on the cluster that this process is connected to; None without one."""
    return serve.status().applications.get(APPLICATION)


def wait(timeout_s: float) -> None:
    """Until the application runs.  Raises `SettingsError` where it fails, or does not in time."""
    began = said = time.monotonic()
    while True:
        found = overview()
        status = found.status if found else ApplicationStatus.NOT_STARTED
        if found and status == ApplicationStatus.RUNNING:
            return
        now = time.monotonic()
        states = [f"{name}: {state(each)}" for name, each in found.deployments.items()] if found else []
        if status == ApplicationStatus.DEPLOY_FAILED or now - began > timeout_s:
            raise SettingsError(f"the models could not be deployed: {'; '.join(states) or status.value}")
        if now - said > SAY_EVERY_S:
            said = now
            log.info("deploying, %d s so far: %s", now - began, "; ".join(states))
        time.sleep(POLL_S)


def state(deployment: DeploymentStatusOverview) -> str:
    """How far a deployment is, in one sentence."""
    said = " ".join(deployment.message.split()).partition(". ")[0]
    return f"{deployment.status.value.lower()} {said}".strip()
