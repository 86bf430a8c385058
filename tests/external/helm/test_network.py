"""Who reaches whom, by the chart's NetworkPolicies."""

import pytest
import yaml

from tests.external.helm.chart import EXAMPLES, helm, named, objects, pods

COMPONENT = "app.kubernetes.io/component"
GATEWAY = "templates/network/gateway.yaml"


def labels(example, component):
    """Of a component's pods."""
    return pods(example)[component]["metadata"]["labels"]


def selects(selector, found):
    """Whether a selector of labels fits."""
    wanted = selector.get("matchLabels", {}).items()
    among = selector.get("matchExpressions", [])
    assert all(each["operator"] == "In" for each in among)
    return wanted <= found.items() and all(found.get(each["key"]) in each["values"] for each in among)


def policies(example, component, direction):
    """The NetworkPolicies that hold for a component's pods."""
    found = labels(example, component)
    return [
        each["spec"]
        for each in objects(example, "NetworkPolicy")
        if selects(each["spec"]["podSelector"], found) and direction in each["spec"]["policyTypes"]
    ]


def callers(example, component, port):
    """The release's components that may open a connection to that port of a component."""
    peers = [
        peer
        for policy in policies(example, component, "Ingress")
        for rule in policy.get("ingress", [])
        if "ports" not in rule or port in [each["port"] for each in rule["ports"]]
        for peer in rule["from"]
    ]
    own = [peer["podSelector"] for peer in peers if "namespaceSelector" not in peer]
    return {name for name in pods(example) if any(selects(each, labels(example, name)) for each in own)}


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_pod_is_open(example):
    """Each is reached, and reaches others, by rules only; the pod of `helm test` serves nothing."""
    for component in pods(example).keys() - {"test"}:
        assert policies(example, component, "Ingress"), component
        assert policies(example, component, "Egress"), component


@pytest.mark.parametrize("example", ["one-gpu", "everything", "rayservice"])
def test_vllm_and_redis_are_reached_from_the_gateway_only(example):
    """vLLM asks for a key on some paths only, and whoever writes to the Redis can change scores."""
    assert {"gateway"} == callers(example, "vllm", 8000)
    assert {"gateway"} == callers(example, "redis", 6379)
    assert set() == callers(example, "models", 80)


@pytest.mark.parametrize("example", ["one-gpu", "everything", "rayservice"])
def test_no_other_namespace_reaches_them(example):
    """Not even where its pods have the same labels."""
    for component in ("vllm", "redis"):
        [policy] = policies(example, component, "Ingress")
        peers = [peer for rule in policy["ingress"] for peer in rule["from"]]
        assert [{"podSelector"}] == [set(peer) for peer in peers]
        assert all("from" in rule and rule["from"] for rule in policy["ingress"])


@pytest.mark.parametrize("example", ["one-gpu", "everything", "rayservice"])
def test_only_the_job_that_downloads_reaches_the_internet(example):
    """The others reach names and each other; Ray's autoscaler reaches Kubernetes' API besides."""
    anywhere = {
        component: {
            each["port"]
            for policy in policies(example, component, "Egress")
            for rule in policy.get("egress", [])
            if "to" not in rule
            for each in rule["ports"]
        }
        for component in pods(example).keys() - {"test"}
    }

    expected = {"gateway": {53}, "models": {53, 443}, "vllm": set(), "redis": set()}
    ray = {"ray-head": {53, 443, 6443}, "ray-worker": {53}}
    assert expected | (ray if example == "rayservice" else {}) == anywhere


def test_ray_is_reached_by_its_own_nodes_and_its_operator():
    """Whoever reaches a node of Ray can run code on it."""
    nodes = {"ray-head", "ray-worker", "gateway"}

    assert nodes == callers("rayservice", "ray-head", 6379) == callers("rayservice", "ray-worker", 10002)
    outside = [
        (rule["ports"], peer["podSelector"]["matchLabels"])
        for policy in policies("rayservice", "ray-head", "Ingress")
        for rule in policy["ingress"]
        for peer in rule["from"]
        if "namespaceSelector" in peer
    ]
    assert [([{"port": 8265}], {COMPONENT: "kuberay-operator"})] == outside


def test_the_gateway_is_reached_by_those_whom_the_operator_names():
    """And by the pod of `helm test`, where the operator names few."""
    peers = '[{"podSelector":{"matchLabels":{"app":"web"}}}]'
    done = helm("template", "--set-json", f"networkPolicy.from={peers}", "--show-only", GATEWAY)
    [public, _] = yaml.safe_load(done.stdout)["spec"]["ingress"]
    test = labels("default", "test")

    assert [{"port": 8000}] == public["ports"]
    assert [{"app": "web"}] == [
        each["podSelector"]["matchLabels"]
        for each in public["from"]
        if not selects(each["podSelector"], test)
    ]
    assert 2 == len(public["from"])
    assert {"gateway", "test"} == callers("default", "gateway", 8000)
    assert set() == callers("default", "gateway", 5432)


def test_the_gateway_reaches_what_the_operator_adds():
    """Such as a Redis outside."""
    rule = '[{"to":[{"ipBlock":{"cidr":"10.1.2.3/32"}}],"ports":[{"port":6379}]}]'
    done = helm("template", "--set-json", f"networkPolicy.egress={rule}")

    assert "cidr: 10.1.2.3/32" in done.stdout


def test_policies_can_be_left_to_others():
    """Where a cluster has its own."""
    assert "kind: NetworkPolicy" not in helm("template", "--set", "networkPolicy.enabled=false").stdout
    assert named("default", "NetworkPolicy", "scoregate")


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_service_leads_to_ports_of_its_pods(example):
    """By name; and the address that the gateway is given is that of a Service."""
    for service in objects(example, "Service"):
        [component] = [
            name
            for name in pods(example)
            if service["spec"]["selector"].items() <= labels(example, name).items()
        ]
        ports = {
            port["name"] for each in pods(example)[component]["spec"]["containers"] for port in each["ports"]
        }
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
