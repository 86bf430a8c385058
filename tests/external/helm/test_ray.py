"""The RayService: what Ray and KubeRay, which have no schema here, make of it."""

import os
import subprocess
import warnings
from importlib import import_module
from inspect import signature

import pytest
import yaml

from service.wiring.load import load_settings
from tests.external.helm.chart import EXAMPLES, helm, named, objects, pods, rendered, variables

KUBERAY = "ray start --address=head:6379  --block  --metrics-export-port=8080  --num-cpus=0 "


def spec():
    [service] = objects("rayservice", "RayService")
    assert "ray.io/v1" == service["apiVersion"]
    return service["spec"]


def groups():
    """The groups of the cluster's pods, by name."""
    cluster = spec()["rayClusterConfig"]
    return {each["groupName"]: each for each in cluster["workerGroupSpecs"]} | {
        "head": cluster["headGroupSpec"]
    }


def test_ray_serve_accepts_the_application(tmp_path):
    """By Ray's own schema, without ports of Ray's; what is imported is there, and takes these arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, about pydantic
        schema = import_module("ray.serve.schema")
        config = schema.ServeDeploySchema.model_validate(yaml.safe_load(spec()["serveConfigV2"]))
        [application] = config.applications
        module, _, name = application.import_path.partition(":")
        build = getattr(import_module(module), name)
    profile = tmp_path / "profile.toml"
    profile.write_text(named("rayservice", "ConfigMap", "scoregate")["data"]["profile.toml"], "utf-8")

    assert "Disabled" == config.proxy_location.value
    assert application.route_prefix is None
    assert 1 == len(signature(build).parameters)
    [head] = pods("rayservice")["ray-head"]["spec"]["containers"]
    mounts = {each["name"]: each["mountPath"] for each in head["volumeMounts"]}
    assert {"config": f"{mounts['profile']}/{profile.name}"} == application.args
    assert {"clip", "vqa"} == {
        name
        for name, table in load_settings(profile, variables(head)).models.items()
        if getattr(table, "autoscaling", None)
    }


def test_models_are_placed_on_the_gpus_and_nowhere_else():
    """The head and the gateways offer Ray no core and no GPU."""
    assert {"models", "gateway", "head"} == groups().keys()
    assert {"num-cpus": "0"} == groups()["head"]["rayStartParams"]
    assert {"num-cpus": "0", "num-gpus": "0"} == groups()["gateway"]["rayStartParams"]
    [worker] = groups()["models"]["template"]["spec"]["containers"]
    assert 1 == worker["resources"]["limits"]["nvidia.com/gpu"]
    for name in ("head", "gateway"):
        [container] = groups()[name]["template"]["spec"]["containers"]
        assert "nvidia.com/gpu" not in container["resources"]["limits"]


def test_there_are_gpus_for_the_fewest_and_for_the_most_replicas(tmp_path):
    """Of the example's profile."""
    profile = tmp_path / "profile.toml"
    profile.write_text(named("rayservice", "ConfigMap", "scoregate")["data"]["profile.toml"], "utf-8")
    [head] = pods("rayservice")["ray-head"]["spec"]["containers"]
    models = load_settings(profile, variables(head)).models
    placed = [models[name] for name in ("clip", "vqa")]

    fewest, most = (
        sum(each.num_gpus * getattr(each.autoscaling, end) for each in placed)
        for end in ("min_replicas", "max_replicas")
    )
    assert (fewest, most) == (groups()["models"]["minReplicas"], groups()["models"]["maxReplicas"])


def test_ray_adds_workers_only_where_there_may_be_more():
    """The gateways stay as many as they are."""
    fixed = helm("template", *EXAMPLES["rayservice"], "--set", "ray.workers.max=2")
    cluster = next(
        each for each in yaml.safe_load_all(fixed.stdout) if each and each["kind"] == "RayService"
    )["spec"]["rayClusterConfig"]

    assert spec()["rayClusterConfig"]["enableInTreeAutoscaling"]
    assert not cluster["enableInTreeAutoscaling"]
    assert "autoscalerOptions" not in cluster
    assert not cluster["headGroupSpec"]["template"]["spec"]["automountServiceAccountToken"]
    gateway = groups()["gateway"]
    assert gateway["minReplicas"] == gateway["replicas"] == gateway["maxReplicas"] == 2


def test_nobody_runs_code_on_the_cluster_without_its_token():
    """KubeRay makes one, and gives it to the cluster's pods; it wants to know Ray's version for that."""
    cluster = spec()["rayClusterConfig"]

    assert {"mode": "token"} == cluster["authOptions"]
    assert (2, 52) <= tuple(map(int, cluster["rayVersion"].split(".")[:2]))
    assert "0" == variables(groups()["head"]["template"]["spec"]["containers"][0])["RAY_USAGE_STATS_ENABLED"]


def test_the_autoscaler_has_no_more_rights_than_others():
    """KubeRay adds its container to the head's pod, with what stands here."""
    options = spec()["rayClusterConfig"]["autoscalerOptions"]

    assert options["securityContext"]["readOnlyRootFilesystem"]
    assert not options["securityContext"]["allowPrivilegeEscalation"]
    assert {"drop": ["ALL"]} == options["securityContext"]["capabilities"]
    assert ["/tmp"] == [each["mountPath"] for each in options["volumeMounts"]]


def test_nodes_are_asked_for_ray_and_gateways_for_the_service():
    """KubeRay's own question for a worker is whether Ray's HTTP proxy answers, which is off here."""
    for name in ("head", "models"):
        [container] = groups()[name]["template"]["spec"]["containers"]
        for probe in ("livenessProbe", "readinessProbe"):
            assert {"path": "/api/healthz", "port": 52365} == container[probe]["httpGet"]
    [container] = groups()["gateway"]["template"]["spec"]["containers"]
    assert "/readyz" == container["readinessProbe"]["httpGet"]["path"]
    assert {"ray.io/overwrite-container-cmd": "true"}.items() <= groups()["gateway"]["template"]["metadata"][
        "annotations"
    ].items()


@pytest.mark.parametrize("status", [0, 1])
def test_a_gateway_joins_ray_and_becomes_the_service(tmp_path, status):
    """Ray goes on beside it, so that `--block` is left out; where Ray doesn't start, nor does the service."""
    for name, code in (("ray", status), ("scoregate-server", 7)):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name}" "$@"\nexit {code}\n', "utf-8")
        program.chmod(0o755)
    [container] = groups()["gateway"]["template"]["spec"]["containers"]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBERAY_GEN_RAY_START_CMD": KUBERAY}
    command = [*container["command"], *container["args"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)

    started, *served = done.stdout.splitlines()
    assert started.split() == [each for each in KUBERAY.split() if each != "--block"]
    assert (served, done.returncode) == (
        ([], 1) if status else (["scoregate-server serve --config /etc/scoregate/profile.toml"], 7)
    )


def test_the_gateways_have_a_service_of_their_own():
    """That of both clusters while an update goes on; Ray's workers are not behind it."""
    service = named("rayservice", "Service", "scoregate")
    chosen = [
        name
        for name, pod in pods("rayservice").items()
        if service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    ]

    assert ["gateway"] == chosen
    assert not [each for each in rendered("rayservice") if each["kind"] == "ScaledObject"]


def test_another_profile_is_another_cluster():
    """All of its processes must agree; a ConfigMap that changes would change some of them at a time."""
    sums = {each["template"]["metadata"]["annotations"]["checksum/profile"] for each in groups().values()}
    other = helm("template", *EXAMPLES["rayservice"], "--set", "profile=other").stdout

    [profile] = sums
    assert profile not in other
