"""What the chart gives to Prometheus, KEDA and Grafana."""

import json
import re
import subprocess

import pytest
import yaml

from service.observability.instruments import Instruments
from tests.external.helm.chart import CHART, NAMESPACE, RELEASE, helm, named, objects
from tests.support.prometheus_server import program

NAME = re.compile(r"\bscoregate_\w+")
SUFFIXES = re.compile(r"_(bucket|sum|count|total|created)$")


def instruments():
    """The instruments' names, as Prometheus' client has them."""
    return {family.name for family in Instruments(["vqa"], []).registry.collect()}


def expressions():
    [scaled] = objects("everything", "ScaledObject")
    return {each["name"]: each for each in scaled["spec"]["triggers"]}


def test_gateways_are_added_by_how_long_calls_wait():
    """A trigger for each lane, with an instrument that exists, of this release only."""
    assert {"interactive": "0.5", "bulk": "60"} == {
        lane: each["metadata"]["threshold"] for lane, each in expressions().items()
    }
    for lane, each in expressions().items():
        query = each["metadata"]["query"]
        assert ["scoregate_queue_wait_seconds_bucket"] == NAME.findall(query)
        assert {SUFFIXES.sub("", name) for name in NAME.findall(query)} <= instruments()
        assert f'namespace="{NAMESPACE}",service="{RELEASE}",lane="{lane}"' in query
        assert "prometheus" == each["type"]
        assert "Value" == each["metricType"]


def test_prometheus_itself_understands_what_keda_asks(tmp_path):
    """promtool reads each query as the expression of a rule."""
    rules = [{"record": lane, "expr": each["metadata"]["query"]} for lane, each in expressions().items()]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "keda", "rules": rules}]}), "utf-8")
    done = subprocess.run([program("promtool"), "check", "rules", str(file)], capture_output=True, text=True)

    assert not done.returncode, done.stdout + done.stderr
    assert "2 rules found" in done.stdout


def test_the_scaled_object_scales_the_deployment_that_has_no_number_of_its_own():
    """Else every `helm upgrade` would set it back."""
    [scaled] = objects("everything", "ScaledObject")
    target = scaled["spec"]["scaleTargetRef"]["name"]

    assert "replicas" not in named("everything", "Deployment", target)["spec"]
    assert 1 == named("one-gpu", "Deployment", target)["spec"]["replicas"]
    assert (1, 4) == (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"])
    behaviour = scaled["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behaviour["scaleDown"]["stabilizationWindowSeconds"] == 600


def test_prometheus_scrapes_the_port_of_the_instruments():
    """That of the Service which the monitor selects, and only that one."""
    [monitor] = objects("everything", "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    services = [
        each for each in objects("everything", "Service") if wanted <= each["metadata"]["labels"].items()
    ]

    [service] = services
    [endpoint] = monitor["spec"]["endpoints"]
    assert RELEASE == service["metadata"]["name"]
    assert "/metrics" == endpoint["path"]
    assert 9000 == next(port["port"] for port in service["spec"]["ports"] if port["name"] == endpoint["port"])
    assert "prometheus" == monitor["metadata"]["labels"]["release"]


def test_the_alerts_are_those_of_the_file():
    """Unchanged: what looks like a template in them is Prometheus' own."""
    [rule] = objects("everything", "PrometheusRule")

    assert yaml.safe_load((CHART / "rules" / "scoregate.yaml").read_text("utf-8")) == rule["spec"]
    assert rule["spec"]["groups"]
    assert "prometheus" == rule["metadata"]["labels"]["release"]


def test_the_dashboard_is_that_of_the_file():
    """With the label by which Grafana finds it."""
    config = named("everything", "ConfigMap", f"{RELEASE}-dashboard")
    [(name, text)] = config["data"].items()

    assert name.endswith(".json")
    assert json.loads((CHART / "dashboards" / name).read_text("utf-8")) == json.loads(text)
    assert json.loads(text)["panels"]
    assert "1" == config["metadata"]["labels"]["grafana_dashboard"]


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule", "ScaledObject", "RayService"])
def test_kinds_that_a_cluster_may_not_have_are_off_by_default(kind):
    """An install into a bare cluster doesn't fail."""
    assert [] == objects("default", kind)
    assert f"kind: {kind}" not in helm("template").stdout
