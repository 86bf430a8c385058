"""helm/: which values are refused, and which images and notes the others give."""

import re
import shutil

import pytest
import yaml

from service import __version__
from tests.external.helm.chart import CHART, EXAMPLES, containers, helm, pods


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_passes_helms_own_lint(example):
    """Strictly: a warning counts."""
    done = helm("lint", "--strict", *EXAMPLES[example])

    assert not done.returncode, done.stdout


def test_the_examples_are_those_that_people_ask_for():
    """One GPU, several with Ray, and none."""
    assert {"default", "everything", "demo", "one-gpu", "rayservice"} == EXAMPLES.keys()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("gatewy.replicas=2", "'gatewy'"),
        ("gateway.replica=2", "'replica'"),
        ("ray.workers.maximum=2", "'maximum'"),
        ("modelCache.models[0].repo=a/b", "'repo'"),
        ("runtime=Ray", "/runtime"),
        ("gateway.replicas=0", "/gateway/replicas"),
        ("gateway.replicas=two", "/gateway/replicas"),
        ("image.tag=latest", "/image/tag"),
        ("image.digest=latest", "/image/digest"),
        ("redis.image=redis", "/redis/image"),
        ("redis.image=redis:latest", "/redis/image"),
        ("questionLlm.revision=main", "/questionLlm/revision"),
        ("modelCache.models[0].revision=main", "/modelCache/models/0/revision"),
        ("networkPolicy.from=", "/networkPolicy/from"),
        ("userId=0", "/userId"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(wrong, named):
    """A key misspelt at any depth, a tag that moves, a revision that is no commit, root."""
    done = helm("template", "--set", wrong)

    assert done.returncode
    assert named in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("gateway.replicas=2", "need a Redis"),
        ("autoscaling.enabled=true", "need a Redis"),
        ("redis.enabled=true", "needs secrets.redis"),
        ("redis.enabled=true,secrets.redis=a,secrets.redisUrl=b", "only one of them"),
        ("questionLlm.enabled=true", "needs modelCache.enabled"),
        ("questionLlm.enabled=true,modelCache.enabled=true", "needs questionLlm.model"),
        ("runtime=ray", "needs a profile"),
        ("runtime=ray,profile=a,autoscaling.enabled=true,secrets.redisUrl=a", "ray.workers.max"),
        ("ray.workers.min=2", "ray.workers.max"),
        ("autoscaling.min=9", "autoscaling.max"),
        ("decisionsLog.enabled=true", "needs gateway.surge=0"),
        (
            "decisionsLog.enabled=true,gateway.surge=0,runtime=ray,profile=a",
            "needs the local runtime and one",
        ),
        (
            "decisionsLog.enabled=true,gateway.surge=0,gateway.replicas=2,secrets.redisUrl=a",
            "needs the local runtime and one gateway",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused(wrong, reason):
    """With a line that says what is missing."""
    done = helm("template", "--set", wrong)

    assert done.returncode
    assert reason in done.stderr


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_image_has_a_version(example):
    """The service's is the chart's own, unless the values say another."""
    images = {each["image"] for pod in pods(example).values() for each in containers(pod)}

    assert f"scoregate-server:{__version__}" in images
    assert all(re.search(r":v?\d+\.\d+\.\d+$", image) for image in images)


def test_a_digest_goes_before_a_tag():
    """What a registry can't change under the name."""
    digest = f"sha256:{'0' * 64}"
    done = helm("template", "--set", f"image.tag=v7,image.digest={digest}")

    assert f"scoregate-server@{digest}" in done.stdout
    assert "scoregate-server:" not in done.stdout


@pytest.mark.parametrize(("example", "told"), [("default", "demo models"), ("rayservice", "port-forward")])
def test_the_notes_say_how_to_go_on(example, told, tmp_path):
    """helm prints them to a cluster only, so that they are rendered as another template here."""
    chart = tmp_path / "scoregate"
    shutil.copytree(CHART, chart)
    (chart / "notes").write_bytes((chart / "templates" / "NOTES.txt").read_bytes())
    (chart / "templates" / "notes.yaml").write_text('notes: {{ tpl (.Files.Get "notes") . | toJson }}')
    done = helm("template", "--show-only", "templates/notes.yaml", *EXAMPLES[example], chart=chart)
    notes = yaml.safe_load(done.stdout)["notes"]

    assert told in notes
    assert "helm test scoregate --namespace scoring" in notes
    assert ("demo models" in notes) == (example == "default")
    assert ("Requests need no API key" in notes) == (example == "default")
    assert ("job/scoregate-models-" in notes) == (example == "rayservice")
