"""The way into the cluster, the registry of the images, and the HorizontalPodAutoscaler."""

import kubernetes_validate
import pytest
import yaml

from tests.external.helm.chart import EXAMPLES, RELEASE, helm, named, objects
from tests.support.pages import fences

INGRESS = "ingress.enabled=true,ingress.className=nginx,ingress.hosts[0]=a.example,ingress.hosts[1]=b.example"
ROUTE = "httpRoute.enabled=true,httpRoute.parentRefs[0].name=front,httpRoute.parentRefs[0].namespace=edge"
PAGE = "operations/kubernetes.md"
EVERYTHING = EXAMPLES["everything"]


def made(kind, *arguments):
    """The only object of a kind."""
    done = helm("template", *arguments)
    assert not done.returncode, done.stderr
    [found] = [each for each in yaml.safe_load_all(done.stdout) if each and each["kind"] == kind]
    return found


@pytest.mark.parametrize("version", ["1.25", "1.37"])
def test_each_host_of_an_ingress_leads_to_the_service(version):
    """All its paths, by the port's name; the Service has no other name for callers."""
    ingress = made("Ingress", "--set", f"{INGRESS},ingress.tlsSecret=certificate")
    service = named("default", "Service", RELEASE)
    backend = {"service": {"name": service["metadata"]["name"], "port": {"name": "http"}}}
    hosts = ["a.example", "b.example"]

    kubernetes_validate.validate(ingress, version, strict=True)
    assert "http" in {port["name"] for port in service["spec"]["ports"]}
    assert hosts == [rule["host"] for rule in ingress["spec"]["rules"]]
    assert [[{"path": "/", "pathType": "Prefix", "backend": backend}]] * 2 == [
        rule["http"]["paths"] for rule in ingress["spec"]["rules"]
    ]
    assert [{"hosts": hosts, "secretName": "certificate"}] == ingress["spec"]["tls"]


def test_a_route_of_the_gateway_api_leads_to_the_service():
    """Of the Gateway that the values name, and for longer than a request may take."""
    spec = made("HTTPRoute", "--set", f"{ROUTE},httpRoute.hosts[0]=a.example")["spec"]
    [rule] = spec["rules"]

    assert [{"name": "front", "namespace": "edge"}] == spec["parentRefs"]
    assert ["a.example"] == spec["hostnames"]
    assert [{"name": RELEASE, "port": 8000}] == rule["backendRefs"]
    assert int(rule["timeouts"]["request"].removesuffix("s")) > 600


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("ingress.enabled=true", "needs ingress.hosts"),
        ("httpRoute.enabled=true", "needs httpRoute.parentRefs"),
        ("ingress.hosts[0]=https://a.example", "/ingress/hosts/0"),
        ("autoscaling.by=cpu", "/autoscaling/by"),
        ("image.registry=https://a.example", "/image/registry"),
    ],
)
def test_a_way_that_leads_nowhere_is_refused(wrong, reason):
    """With its key."""
    done = helm("template", "--set", wrong)

    assert done.returncode
    assert reason in done.stderr


@pytest.mark.parametrize("kind", ["Ingress", "HTTPRoute", "HorizontalPodAutoscaler"])
def test_nothing_is_reached_or_scaled_unless_the_values_say_so(kind):
    """A new release stays inside its cluster."""
    assert [] == objects("default", kind)


def test_the_example_of_the_page_is_accepted(tmp_path):
    """Its Ingress, and the controller's pods among those that may call the service."""
    [example] = [text for _, text in fences(PAGE, "yaml") if text.startswith("ingress:")]
    file = tmp_path / "values.yaml"
    file.write_text(example, "utf-8")
    ingress = made("Ingress", "--values", str(file))
    policy = made("NetworkPolicy", "--values", str(file))

    assert "64m" == ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"]
    assert yaml.safe_load(example)["networkPolicy"]["from"] == policy["spec"]["ingress"][0]["from"][:2]


def test_all_images_come_from_the_registry_of_the_values():
    """Those of vLLM and Redis, too, with the Secrets of its password."""
    arguments = *EVERYTHING, "--set", "image.registry=registry.internal:5000/mirror,image.pullSecrets={a,b}"
    done = helm("template", *arguments)
    images = [line.split()[-1] for line in done.stdout.splitlines() if line.strip().startswith("image: ")]

    assert len(set(images)) == 3
    assert all(image.startswith("registry.internal:5000/mirror/") for image in images)
    assert done.stdout.count("imagePullSecrets:\n") == done.stdout.count("enableServiceLinks: false")


def test_a_pod_autoscaler_scales_by_the_waits_that_keda_reads():
    """Same limits, same quantile, and one of both kinds only."""
    arguments = *EVERYTHING, "--set", "autoscaling.by=hpa"
    scaler = made("HorizontalPodAutoscaler", *arguments)
    [scaled] = objects("everything", "ScaledObject")
    triggers = {each["name"]: each["metadata"] for each in scaled["spec"]["triggers"]}
    metrics = [each["external"] for each in scaler["spec"]["metrics"]]

    kubernetes_validate.validate(scaler, "1.37", strict=True)
    assert "kind: ScaledObject" not in helm("template", *arguments).stdout
    assert scaler["spec"]["scaleTargetRef"]["name"] == scaled["spec"]["scaleTargetRef"]["name"]
    assert {lane: each["threshold"] for lane, each in triggers.items()} == {
        each["metric"]["selector"]["matchLabels"]["lane"]: each["target"]["value"] for each in metrics
    }


def test_the_adapter_of_the_page_computes_what_keda_computes():
    """The metric has the name that the autoscaler reads."""
    [text] = [text for _, text in fences(PAGE, "yaml") if "externalRules" in text]
    [rule] = yaml.safe_load(text)["externalRules"]
    [scaled] = objects("everything", "ScaledObject")
    scaler = made("HorizontalPodAutoscaler", *EVERYTHING, "--set", "autoscaling.by=hpa")
    [keda] = [each["metadata"] for each in scaled["spec"]["triggers"] if each["name"] == "bulk"]
    labels = f'namespace="scoring",service="{RELEASE}",lane="bulk"'
    query = rule["metricsQuery"].replace("<<.Series>>", rule["seriesQuery"])

    assert {rule["name"]["as"]} == {each["external"]["metric"]["name"] for each in scaler["spec"]["metrics"]}
    assert "".join(keda["query"].split()) == "".join(query.replace("<<.LabelMatchers>>", labels).split())
