"""The chart as the real helm renders it."""

import functools
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.support.paths import ROOT

CHART = ROOT / "helm"
RELEASE, NAMESPACE = "scoregate", "scoring"

# Everything that can be switched on with the local runtime, at once.
EVERYTHING = (
    *("--set", "autoscaling.enabled=true,gateway.graceSeconds=90"),
    *("--set", "watching.serviceMonitor=true,watching.rules=true,watching.dashboard=true"),
    *("--set", "secrets.apiKeys=keys,secrets.huggingFace=hub,secrets.vllm=vllm"),
    *("--set", "watching.labels.release=prometheus"),
)
EXAMPLES: dict[str, tuple[str, ...]] = {
    "default": (),
    "everything": ("--values", str(CHART / "values-one-gpu.yaml"), *EVERYTHING),
    **{
        path.stem.removeprefix("values-"): ("--values", str(path))
        for path in sorted(CHART.glob("values-*.yaml"))
    },
}

Object = dict[str, Any]


def program() -> str:
    """The path of helm."""
    found = shutil.which("helm", path=str(ROOT / "build" / "bin")) or shutil.which("helm")
    assert found, "the tests render the chart with the real helm: run `make helm` first"
    return found


@functools.cache
def helm(*arguments: str, chart: Path = CHART) -> subprocess.CompletedProcess[str]:
    """What `helm template` or `helm lint` says of the chart; helm runs once for the same arguments."""
    command, *more = arguments
    names = [RELEASE, str(chart), "--namespace", NAMESPACE] if command == "template" else [str(chart)]
    return subprocess.run([program(), command, *names, *more], capture_output=True, text=True)


@functools.cache
def rendered(example: str) -> tuple[Object, ...]:
    """The objects that an example makes."""
    done = helm("template", *EXAMPLES[example])
    assert not done.returncode, done.stderr
    return tuple(each for each in yaml.safe_load_all(done.stdout) if each)


def objects(example: str, kind: str) -> list[Object]:
    """An example's objects of one kind."""
    return [each for each in rendered(example) if each["kind"] == kind]


def named(example: str, kind: str, name: str) -> Object:
    """An example's object of one kind and name."""
    [found] = [each for each in objects(example, kind) if each["metadata"]["name"] == name]
    return found


def pods(example: str) -> dict[str, Object]:
    """Every pod of an example, as metadata and spec, by its component; a RayCluster's are among them."""
    found = {}
    for each in rendered(example):
        for template in templates(each):
            found[template["metadata"]["labels"]["app.kubernetes.io/component"]] = template
    return found


def templates(each: Object) -> Iterator[Object]:
    """The pods that an object makes, or is."""
    spec = each.get("spec", {})
    if each["kind"] == "Pod":
        yield each
    elif each["kind"] == "RayService":
        cluster = spec["rayClusterConfig"]
        yield from (group["template"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]))
    elif "template" in spec:
        yield spec["template"]


def containers(pod: Object) -> list[Object]:
    """All containers of a pod, those that go first among them."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def variables(container: Object) -> dict[str, str]:
    """A container's variables as its process sees them; a secret's value is `secret`."""
    known: dict[str, str] = {}
    for each in container["env"]:
        value = each.get("value", "secret")
        for name, earlier in known.items():
            value = value.replace(f"$({name})", earlier)
        known[each["name"]] = value
    return known
