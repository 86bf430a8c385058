"""The chart's objects: valid for Kubernetes, without rights that nobody needs, and never cut short."""

import kubernetes_validate
import pytest

from service.process.launch import CLOSE_S
from tests.external.helm.chart import EXAMPLES, containers, objects, pods, rendered, variables

KUBERNETES = ("1.25", "1.37")

# Other projects' kinds, of which kubernetes-validate has no schemas: other tests assert what matters.
FOREIGN = {"RayService", "ScaledObject", "ServiceMonitor", "PrometheusRule"}

OURS = {"gateway", "ray-head", "ray-worker", "models", "test"}  # with the service's image


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_object_is_valid_for_kubernetes(example, version):
    """By Kubernetes' own schemas, in which an unknown field is a fault."""
    known = [each for each in rendered(example) if each["kind"] not in FOREIGN]

    assert known
    for each in known:
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_pods_of_other_projects_objects_are_valid_too(example):
    """A RayService has whole pods in it."""
    for name, pod in pods(example).items():
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod["spec"]}
        kubernetes_validate.validate(whole, KUBERNETES[-1], strict=True)


def test_each_example_has_the_pods_that_it_says():
    """By component; the model cache's job and the test of `helm test` among them."""
    assert {"gateway", "test"} == pods("default").keys() == pods("demo").keys()
    assert (
        {"gateway", "vllm", "redis", "models", "test"} == pods("one-gpu").keys() == pods("everything").keys()
    )
    assert pods("one-gpu").keys() | {"ray-head", "ray-worker"} == pods("rayservice").keys()


@pytest.mark.parametrize("example", EXAMPLES)
def test_two_objects_of_a_kind_have_two_names(example):
    """One would replace the other without a word."""
    names = [(each["kind"], each["metadata"]["name"]) for each in rendered(example)]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_pod_has_rights_that_it_does_not_need(example):
    """Not root, a root file system that can't be written, no capability, no token of Kubernetes."""
    for name, pod in pods(example).items():
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"], name
        assert spec["securityContext"]["runAsUser"] > 0
        assert {"type": "RuntimeDefault"} == spec["securityContext"]["seccompProfile"]
        assert not spec["enableServiceLinks"]
        # Ray's autoscaler, in the head's pod, asks Kubernetes for more workers.
        assert spec["automountServiceAccountToken"] == (name == "ray-head")
        for container in containers(pod):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"], (name, container["name"])
            assert not rights["allowPrivilegeEscalation"]
            assert {"drop": ["ALL"]} == rights["capabilities"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_container_says_what_it_needs(example):
    """So that none can take a node's memory from the others."""
    for name, pod in pods(example).items():
        for container in containers(pod):
            resources = container["resources"]
            assert resources["requests"]["memory"] == resources["limits"]["memory"], (name, container["name"])
            assert "cpu" in resources["requests"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_is_mounted_is_a_volume_and_the_models_can_only_be_read(example):
    """But for the job that downloads them."""
    for name, pod in pods(example).items():
        volumes = {each["name"]: each for each in pod["spec"].get("volumes", [])}
        if name == "redis":
            volumes["data"] = {}  # StatefulSets make it
        for container in containers(pod):
            for mount in container.get("volumeMounts", []):
                assert mount["name"] in volumes
                if mount["name"] == "models":
                    assert mount.get("readOnly", False) == (name != "models")
                    assert "/models" == mount["mountPath"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_ray_and_vllm_share_in_memory_has_a_limit(example):
    """Without a volume /dev/shm has 64 MB; without a limit it may take half of the node's memory."""
    for name in pods(example).keys() & {"vllm", "ray-head", "ray-worker"}:
        [container] = pods(example)[name]["spec"]["containers"]
        [mount] = [each for each in container["volumeMounts"] if each["mountPath"] == "/dev/shm"]
        volumes = {each["name"]: each for each in pods(example)[name]["spec"]["volumes"]}
        assert "Memory" == volumes[mount["name"]]["emptyDir"]["medium"]
        assert volumes[mount["name"]]["emptyDir"]["sizeLimit"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_requests_in_progress_may_finish_before_the_pod_is_killed(example):
    """The pod has more time than its last wait, the service's grace, and what it takes to close."""
    spec = pods(example)["gateway"]["spec"]
    [container] = spec["containers"]
    grace_s = int(variables(container)["SCOREGATE_SERVER__GRACE_S"])
    waits_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])

    assert grace_s == (90 if example == "everything" else 30)
    assert spec["terminationGracePeriodSeconds"] > waits_s + grace_s + CLOSE_S


def test_a_drain_takes_one_pod_at_a_time():
    """Of a RayCluster Kubernetes knows no wanted number, so that only a least number works."""
    [local], [ray] = objects("one-gpu", "PodDisruptionBudget"), objects("rayservice", "PodDisruptionBudget")
    [gateways] = [
        group
        for group in objects("rayservice", "RayService")[0]["spec"]["rayClusterConfig"]["workerGroupSpecs"]
        if group["groupName"] == "gateway"
    ]

    assert local["spec"]["maxUnavailable"] == 1
    assert "minAvailable" not in local["spec"]
    assert gateways["replicas"] - 1 == ray["spec"]["minAvailable"]
    assert "maxUnavailable" not in ray["spec"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_secrets_are_named_and_go_to_those_who_ask_others(example):
    """The chart holds none itself; Ray's nodes, which run models, need none."""
    assert [] == objects(example, "Secret")
    needing = {
        name
        for name, pod in pods(example).items()
        if any("valueFrom" in each for container in containers(pod) for each in container.get("env", []))
        or any("secret" in volume for volume in pod["spec"].get("volumes", []))
    }

    assert needing <= {"gateway", "vllm", "redis", "models"}
    assert (
        needing
        == {
            "default": set(),
            "demo": set(),
            "one-gpu": {"gateway", "redis"},
            "rayservice": {"gateway", "redis", "vllm"},
            "everything": {"gateway", "redis", "vllm", "models"},
        }[example]
    )
