"""The service as the chart starts it: its settings, its models, its probes."""

import json
import re
import tomllib

import pytest
import yaml

from service.core.settings import SettingsError
from service.process.command import parser
from service.wiring.load import DEMO_PROFILE, load_settings
from tests.external.helm.chart import EXAMPLES, RELEASE, helm, named, objects, pods, variables
from tests.support.paths import ROOT

PROFILES = {
    "one-gpu": ROOT / "deploy" / "profiles" / "gpu-24gb.toml",
    "rayservice": ROOT / "deploy" / "profiles" / "gpu-24gb.toml",
}
SHIPPED = ("default", "demo")


def gateway(example):
    """The container that callers reach."""
    [container] = pods(example)["gateway"]["spec"]["containers"]
    return container


def profile(example, folder):
    """The profile as it lies in the pod; None where there is none."""
    found = [each for each in objects(example, "ConfigMap") if "profile.toml" in each["data"]]
    if not found:
        return None
    path = folder / "profile.toml"
    path.write_text(found[0]["data"]["profile.toml"], "utf-8")
    return path


def address(example, component):
    """Where a component's Service is reached."""
    service = named(example, "Service", f"{RELEASE}-{component}")
    [port] = service["spec"]["ports"]
    return f"{service['metadata']['name']}:{port['port']}"


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_settings_of_every_pod_are_accepted(example, tmp_path):
    """By the service's own loader, under the variables of each of its pods; it listens where it is asked."""
    path = profile(example, tmp_path)
    assert (path is None) == (example in SHIPPED)
    for component in pods(example).keys() & {"gateway", "ray-head", "ray-worker"}:
        [container] = pods(example)[component]["spec"]["containers"]
        settings = load_settings(path, variables(container))
        assert settings.runtime.kind == ("ray" if example == "rayservice" else "local")
        if component == "gateway":
            ports = {each["name"]: each["containerPort"] for each in container["ports"]}
            assert {"http": settings.server.port, "metrics": settings.server.metrics_port} == ports
            assert "0.0.0.0" == settings.server.host


def test_the_log_of_decisions_lies_on_a_volume_that_the_pod_may_write(tmp_path):
    """Its file system is read-only, and the volume is there after another install."""
    profile = tmp_path / "profile.toml"
    profile.write_text('[models.clip]\nfamily = "open_clip"\ncheckpoint = "demo:clip"\n')
    done = helm(
        "template",
        *("--set", "decisionsLog.enabled=true,decisionsLog.size=2Gi,gateway.surge=0"),
        *("--set-file", f"profile={profile}"),
    )
    found = {
        (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout) if each
    }
    pod = found["Deployment", RELEASE]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    claim = found["PersistentVolumeClaim", f"{RELEASE}-decisions"]
    path = load_settings(profile, variables(container)).decisions.path
    [mount] = [each for each in container["volumeMounts"] if each["name"] == "decisions"]
    [volume] = [each for each in pod["volumes"] if each["name"] == "decisions"]

    assert mount["mountPath"] == str(path.parent)
    assert "readOnly" not in mount
    assert {"claimName": claim["metadata"]["name"]} == volume["persistentVolumeClaim"]
    assert "2Gi" == claim["spec"]["resources"]["requests"]["storage"]
    assert "keep" == claim["metadata"]["annotations"]["helm.sh/resource-policy"]
    assert 0 == found["Deployment", RELEASE]["spec"]["strategy"]["rollingUpdate"]["maxSurge"]


def test_a_misspelt_setting_in_a_profile_is_seen_by_this_check(tmp_path):
    """So that the test above means something."""
    path = profile("one-gpu", tmp_path)
    path.write_text(path.read_text("utf-8").replace("timeout_s", "timeout_z"), "utf-8")

    with pytest.raises(SettingsError, match="timeout_z"):
        load_settings(path, variables(gateway("one-gpu")))


@pytest.mark.parametrize("example", sorted(EXAMPLES.keys() - {"rayservice"}))
def test_the_command_is_one_that_the_service_knows(example):
    """Its program, and arguments that lead to the profile that is mounted."""
    program, *arguments = gateway(example)["command"]
    parsed = parser().parse_args(arguments)
    mounts = {each["name"]: each["mountPath"] for each in gateway(example)["volumeMounts"]}

    assert ("scoregate-server", "serve") == (program, parsed.command)
    assert (parsed.config is None) == (example in SHIPPED)
    if parsed.config:
        assert mounts["profile"] == str(parsed.config.parent)
        assert parsed.config.name in named(example, "ConfigMap", RELEASE)["data"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_probes_ask_what_the_service_answers(example, app):
    """Alive and ready are two questions; nothing answers while models load, so that the first probe waits."""
    container = gateway(example)
    startup, alive, ready = (container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness"))

    assert {"/livez", "/readyz"} <= app.openapi()["paths"].keys()
    assert ("/livez", "/livez", "/readyz") == tuple(
        each["httpGet"]["path"] for each in (startup, alive, ready)
    )
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 300


@pytest.mark.parametrize("example", EXAMPLES)
def test_everything_that_is_written_has_a_place(example, tmp_path):
    """The root file system can't: question sets, caches and temporary files go to volumes or to Redis."""
    known = variables(gateway(example))
    settings = load_settings(profile(example, tmp_path), known)
    writable = {each["mountPath"] for each in gateway(example)["volumeMounts"] if not each.get("readOnly")}

    assert "/tmp" in writable
    assert "/tmp" == known["HOME"]
    assert "questions" in settings.cache.redis or settings.cache.questions_path.is_relative_to("/tmp")


@pytest.mark.parametrize("example", ["one-gpu", "everything", "rayservice"])
def test_the_gateway_asks_the_chart_s_own_redis_and_vllm(example, tmp_path):
    """Under the names of their Services, vLLM for the model that it serves."""
    settings = load_settings(profile(example, tmp_path), variables(gateway(example)))
    [vllm] = pods(example)["vllm"]["spec"]["containers"]
    questions = settings.models["questions"]

    shared = f"redis://:secret@{address(example, 'redis')}/0"
    assert {"questions": shared, "scores": shared} == settings.cache.redis
    assert f"http://{address(example, 'vllm')}/v1" == questions.base_url
    assert [questions.model, f"--revision={questions.revision}"] == vllm["args"][:2]
    assert ["vllm", "serve"] == vllm["command"]
    asks = example != "one-gpu"
    assert ("VLLM_API_KEY" == questions.api_key_env) == asks == ("VLLM_API_KEY" in variables(vllm))
    assert ("VLLM_API_KEY" in variables(gateway(example))) == asks


@pytest.mark.parametrize("example", ["one-gpu", "everything", "rayservice"])
def test_the_models_that_are_loaded_are_downloaded_before(example, tmp_path):
    """Each at its commit, the question LLM too; the pods wait for the file that the job writes."""
    settings = load_settings(profile(example, tmp_path), variables(gateway(example)))
    [job] = pods(example)["models"]["spec"]["containers"]
    fetched = {each["repository"]: each for each in json.loads(variables(job)["MODELS"])}
    directories = {each.get("directory"): each["revision"] for each in fetched.values()}

    vqa, clip, questions = (settings.models[name] for name in ("vqa", "clip", "questions"))
    assert vqa.revision == fetched[vqa.checkpoint]["revision"]
    assert questions.revision == fetched[questions.model]["revision"]
    assert clip.revision == directories[clip.pretrained.split("/")[2]]
    for component in ("vllm", "ray-worker" if example == "rayservice" else "gateway"):
        [wait] = pods(example)[component]["spec"]["initContainers"]
        assert variables(job)["READY"] in wait["command"][2]
    assert "1" == variables(gateway(example))["HF_HUB_OFFLINE"]
    assert "HF_HUB_OFFLINE" not in variables(job)
    caches = {
        variables(each)["HF_HUB_CACHE"]
        for each in (job, gateway(example), *pods(example)["vllm"]["spec"]["containers"])
    }
    assert {"/models/hub"} == caches


@pytest.mark.parametrize("example", PROFILES)
def test_the_examples_have_the_models_of_the_shipped_profiles(example):
    """Same ids and commits, and vLLM the same arguments, as in deploy/profiles."""
    shipped = PROFILES[example].read_text("utf-8")
    tables = tomllib.loads(shipped)["models"]
    own = tomllib.loads(named(example, "ConfigMap", RELEASE)["data"]["profile.toml"])["models"]
    [vllm] = pods(example)["vllm"]["spec"]["containers"]

    assert {name: table["family"] for name, table in tables.items()} == {
        name: table["family"] for name, table in own.items()
    }
    assert tables["vqa"]["checkpoint"] == own["vqa"]["checkpoint"]
    assert tables["vqa"]["revision"] == own["vqa"]["revision"]
    assert tables["clip"]["model"] == own["clip"]["model"]
    assert own["clip"]["revision"] in shipped
    assert [tables["questions"]["model"], f"--revision={tables['questions']['revision']}"] == vllm["args"][:2]
    if example == "one-gpu":
        command = " ".join(
            re.findall(r"^#   ?(.*?)\\?$", shipped.split("scoregate-server --config")[0], re.MULTILINE)
        )
        assert {each for each in vllm["args"][1:] if "host" not in each and "port" not in each} <= {
            each.replace(" ", "=") for each in re.findall(r"--[\w-]+ \S+", command)
        }


def test_the_default_is_the_demo_profile():
    """No profile is mounted, so that the service takes the one that is built in."""
    assert [] == [each for each in objects("default", "ConfigMap") if "profile.toml" in each["data"]]
    assert DEMO_PROFILE.is_file()
