"""The deployment of models on a cluster."""

import logging
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import ray
from ray import serve
from ray._private.state import available_resources_per_node
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from ray.serve.context import _get_global_client
from ray.serve.handle import DeploymentHandle
from ray.serve.schema import (
    ApplicationStatus,
    ApplicationStatusOverview,
    DeploymentStatus,
    DeploymentStatusOverview,
    LoggingConfig,
)

from models.core.settings import ModelSettings, PlacedSettings
from service.core.settings import SettingsError
from service.core.settings.tree import PLACING, Settings
from service.serving.loading import is_placed
from service.serving.ray.groups import gpus, has_room, unplaced, version_of
from service.serving.ray.replica import DeployedReplica

APPLICATION, INGRESS = "scoregate", "models"
FAILED_STATUSES = (DeploymentStatus.DEPLOY_FAILED, DeploymentStatus.UNHEALTHY)
ROUTER = "service.serving.ray.router.ByName"

# Ray's queue is first come, first served.  Without a limit it stays empty, and our lanes decide.
MAX_ONGOING_REQUESTS = 100_000
log = logging.getLogger("scoregate.ray")
POLL_S, LOG_EVERY_S = 0.5, 15.0


class Models:
    """The ingress deployment that Serve requires.  It is never called."""

    def __init__(self, **models: DeploymentHandle) -> None:
        self._models = models


def application(
    settings: Settings, *, surge: bool = False, before: Mapping[str, str] = MappingProxyType({})
) -> serve.Application:
    """
    Return a deployment for each model that Ray places.

    Args:
        surge: in an update, start the new replicas before the old ones stop.  Ray waits for room for them.
        before: the versions that are deployed.

    Raises:
        SettingsError: there is no such model.
    """
    placed = {name: table for name, table in settings.models.items() if is_placed(settings, table)}
    if settings.runtime.kind != "ray":
        raise SettingsError('runtime.kind is not "ray"')
    if not placed:
        raise SettingsError("models: none of them is loaded from a checkpoint, so Ray has nothing to place")
    models = {
        name: deployment(name, table, settings, surge=surge, before=before.get(name, ""))
        for name, table in placed.items()
    }
    ingress = serve.deployment(Models).options(name=INGRESS, ray_actor_options={"num_cpus": 0})
    return with_version(ingress, version_of({}, before.get(INGRESS, ""))).bind(**models)


def deployment(
    name: str, table: ModelSettings, settings: Settings, *, surge: bool, before: str
) -> serve.Application:
    """Return the deployment of one model."""
    tables = tables_of(name, settings)
    placed = PlacedSettings.of(table)
    options: dict[str, Any] = {"num_replicas": placed.replicas}
    if autoscaling := placed.autoscaling:
        options = {
            "autoscaling_config": AutoscalingConfig(
                min_replicas=autoscaling.min_replicas,
                max_replicas=autoscaling.max_replicas,
                target_ongoing_requests=autoscaling.target_groups,
            )
        }
    replicas = serve.deployment(DeployedReplica).options(
        name=name,
        **options,
        max_ongoing_requests=MAX_ONGOING_REQUESTS,
        ray_actor_options={"num_gpus": gpus(table), "num_cpus": placed.num_cpus},
        graceful_shutdown_timeout_s=settings.server.grace_s,
        graceful_shutdown_wait_loop_s=0.2,
        max_surge_percent=100 if surge else 0,
        health_check_period_s=5,
        request_router_config=RequestRouterConfig(request_router_class=ROUTER),
        logging_config=LoggingConfig(enable_access_log=False, log_level="WARNING"),
    )
    return with_version(replicas, version_of(tables, before)).bind(name, tables)


def with_version(deployment: serve.Deployment, version: str) -> serve.Deployment:
    """Return *deployment* with a version; Ray would give it a new one, and replace all replicas."""
    return deployment.options(version=version, _internal=True)


def tables_of(name: str, settings: Settings) -> dict[str, Any]:
    """
    Return the settings that a replica needs.

    Ray replaces replicas if this changes, so it contains no secret, and nothing about their number.
    """
    tables: dict[str, Any] = settings.model_dump(
        mode="json",
        exclude_unset=True,
        include={
            "models": {name: True},
            "queue": {"weights", "ageing_s", "max_cost"},
            "server": {"stall_s"},
            "images": {"decode_workers"},
            "runtime": {"kind"},
        },
    )
    table = tables["models"][name]
    tables["models"][name] = {key: table[key] for key in table if key not in {*PLACING} - {"num_cpus"}}
    return tables


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
    surge = has_room(settings, list(available_resources_per_node().values()))
    app = application(settings, surge=surge, before=versions())
    serve.start(proxy_location="Disabled")
    target = serve.RunTarget(app, name=APPLICATION, route_prefix=None)
    serve.run_many([target], wait_for_applications_running=False)
    wait(settings.runtime.start_timeout_s)


def deployed() -> set[str]:
    """Return the names of the deployed models."""
    found = overview()
    return set(found.deployments) if found else set()


def versions() -> dict[str, str]:
    """Return the version of each deployment that has not failed."""
    found, client = overview(), _get_global_client(raise_if_no_controller_running=False)
    statuses = found.deployments if found else {}
    running = [name for name, each in statuses.items() if each.status not in FAILED_STATUSES]
    return {name: client.get_deployment_info(name, APPLICATION)[0].version for name in running}


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
