"""helm/: what can be set, what is refused, and which versions it names."""

import json
import re
import shutil
from itertools import pairwise

import pytest
import yaml

from service import __version__
from tests.docs.pages import ROOT
from tests.helm.chart import CHART, EXAMPLES, containers, helm, pods

VALUES = (CHART / "values.yaml").read_text("utf-8")


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
    ],
)
def test_values_that_do_not_go_together_are_refused(wrong, reason):
    """With a line that says what is missing."""
    done = helm("template", "--set", wrong)

    assert done.returncode
    assert reason in done.stderr


def keys(table, place=()):
    """Every key of a tree of tables, and not those below a list or an empty table."""
    for name, value in table.items():
        yield (*place, name)
        if isinstance(value, dict) and name not in ("resources", "from", "metricsFrom"):
            yield from keys(value, (*place, name))


def schema_keys(schema, definitions, place=()):
    """The same of a schema."""
    schema = definitions.get(schema.get("$ref", "").rpartition("/")[2], schema)
    for name, value in schema.get("properties", {}).items():
        yield (*place, name)
        if name != "resources":
            yield from schema_keys(value, definitions, (*place, name))


def test_the_schema_knows_the_keys_of_the_values_and_no_other():
    """But for `global`, which helm itself gives to a chart within a chart."""
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))

    assert set(keys(yaml.safe_load(VALUES))) | {("global",)} == set(
        schema_keys(schema, schema["definitions"])
    )


def test_every_table_of_the_schema_refuses_other_keys():
    """Labels and the like are anyone's, and say so."""
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))

    def open_tables(part):
        if isinstance(part, dict):
            if "properties" in part and part.get("additionalProperties") is not False:
                yield part
            for each in part.values():
                yield from open_tables(each)

    assert [] == list(open_tables(schema))


def test_every_value_has_a_sentence_and_all_fit_on_few_pages():
    """A comment stands above each key that is no table of others; at most 250 lines."""
    lines = VALUES.splitlines()
    tables = {name for *_, name in (place[:-1] for place in keys(yaml.safe_load(VALUES)) if len(place) > 1)}
    bare = [
        line
        for above, line in pairwise(lines)
        if (key := re.match(r" *(\w+):", line))
        and key[1] not in tables | {"requests", "limits", "resources"}
        and not above.lstrip().startswith("#")
    ]

    assert [] == bare
    assert len(lines) <= 250


def test_the_versions_are_those_that_the_tests_run():
    """The service's own, Ray's and vLLM's, wherever they are written."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    values = yaml.safe_load(VALUES)
    locks = {name: (ROOT / f"requirements{name}.lock").read_text("utf-8") for name in ("-ray", "-vllm")}

    assert __version__ == chart["appVersion"] == chart["version"]
    assert f"\nray=={values['ray']['version']}\n" in locks["-ray"]
    assert f"\nvllm-cpu=={values['questionLlm']['image'].rpartition(':v')[2]}\n" in locks["-vllm"]


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
    assert ("No keys are asked for" in notes) == (example == "default")
    assert ("job/scoregate-models-" in notes) == (example == "rayservice")
