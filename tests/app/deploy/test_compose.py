"""deploy/compose.yaml: files that are there, settings that are accepted, and who reaches whom."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from service.process.command import parser
from service.process.launch import CLOSE_S
from service.wiring.load import load_settings
from tests.support.compose import COMPOSE, DEPLOY, METRICS_PORT, SERVICES, mounts
from tests.support.dockerfile import environment
from tests.support.paths import ROOT
from tests.support.units import options, told_in

PROFILE = DEPLOY / "profiles" / "gpu-24gb.toml"
HELM = yaml.safe_load((ROOT / "helm" / "values.yaml").read_text("utf-8"))


def settings(service):
    """What the service makes of its variables, and of the profile that it is told to read."""
    told = parser().parse_args(SERVICES[service].get("command", ["scoregate-server"])[1:])
    files = {target: (DEPLOY / source).resolve() for source, target in mounts(service)}
    profile = files[str(told.config)] if told.config else None
    return load_settings(profile, environment() | SERVICES[service]["environment"])


@pytest.mark.parametrize("name", SERVICES)
def test_every_file_that_is_mounted_is_there(name):
    """And every volume is declared."""
    for source, _ in mounts(name):
        assert (DEPLOY / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], source


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_version(name):
    """The service's own is this one, and the chart's are the same."""
    image = SERVICES[name]["image"]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    known = {"redis": HELM["redis"]["image"], "vllm": HELM["questionLlm"]["image"]}
    known |= dict.fromkeys(("gateway", "demo"), f"${{SCOREGATE_IMAGE:-scoregate-server:{version}}}")

    assert re.search(r":v?\d+\.\d+\.\d+}?$", image)
    assert known.get(name, image) == image


@pytest.mark.parametrize("name", ["gateway", "demo"])
def test_the_service_accepts_its_settings(name):
    """It listens where the port is published and where Prometheus asks."""
    server = settings(name).server
    [published] = SERVICES[name]["ports"]

    assert ("0.0.0.0", METRICS_PORT) == (server.host, server.metrics_port)
    assert f"127.0.0.1:8000:{server.port}" == published


@pytest.mark.parametrize("name", ["gateway", "demo"])
def test_the_requests_in_progress_are_finished_before_docker_kills(name):
    """The grace, the close after it, and a while."""
    seconds = float(SERVICES[name]["stop_grace_period"].removesuffix("s"))

    assert settings(name).server.grace_s + CLOSE_S + 5 <= seconds


@pytest.mark.parametrize("name", ["gateway", "demo"])
def test_the_root_file_system_cannot_be_written(name):
    """/tmp can, and what stays goes to volumes."""
    service = SERVICES[name]

    assert service["read_only"]
    assert ["ALL"] == service["cap_drop"]
    assert ["/tmp:exec,mode=1777"] == service["tmpfs"]


def test_the_demo_needs_no_gpu():
    """It, Prometheus and Grafana are all that its profile starts."""
    started = {name for name, each in SERVICES.items() if "demo" in each.get("profiles", ["demo"])}

    assert {"demo", "prometheus", "grafana"} == started
    assert not any("deploy" in SERVICES[name] for name in started)
    assert "cpu" == settings("demo").models["vqa"].device


def test_question_sets_stay_when_containers_go():
    """In a Redis that writes them down, or in a file on a volume."""
    assert "redis://redis:6379/0" == settings("gateway").cache.questions == settings("gateway").cache.scores
    assert "sqlite:////cache/questions.sqlite3" == settings("demo").cache.questions
    assert ("questions", "/cache") in mounts("demo")
    assert ("redis", "/data") in mounts("redis")


def test_the_vllm_is_the_one_that_the_profile_counts_with():
    """The same model and arguments, but for its address, which is the one that the gateway asks."""
    told, given = options(told_in(PROFILE)), options(SERVICES["vllm"]["command"])
    questions = settings("gateway").models["questions"]
    address = ("--host", "--port")

    assert {k: v for k, v in told.items() if k not in address} == {
        k: v for k, v in given.items() if k not in address
    }
    assert f"http://vllm:{given['--port']}/v1" == questions.base_url
    assert (given["model"], given["--revision"]) == (questions.model, questions.revision)
    assert "service_healthy" == SERVICES["gateway"]["depends_on"]["vllm"]["condition"]


def test_only_the_gateway_reaches_vllm_and_redis():
    """Both have no password, and a network that no one else is on."""
    for network, inside in (("store", "redis"), ("llm", "vllm")):
        members = {name for name, each in SERVICES.items() if network in each["networks"]}
        assert {"gateway", inside} == members
        assert "ports" not in SERVICES[inside]
    assert COMPOSE["networks"]["store"]["internal"]


@pytest.mark.parametrize("name", ["gateway", "demo", "prometheus", "grafana"])
def test_ports_open_on_this_machine_only(name):
    """A proxy goes before them."""
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name]["ports"])


def test_grafana_finds_prometheus_and_the_dashboard():
    """By the names that the other files give them."""
    [source] = yaml.safe_load((DEPLOY / "grafana" / "datasources.yml").read_text("utf-8"))["datasources"]
    [provider] = yaml.safe_load((DEPLOY / "grafana" / "dashboards.yml").read_text("utf-8"))["providers"]
    folders = {target: (DEPLOY / place) for place, target in mounts("grafana")}

    assert "http://prometheus:9090" == source["url"]
    assert list(Path(folders[provider["options"]["path"]]).glob("*.json"))
