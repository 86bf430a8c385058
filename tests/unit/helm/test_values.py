"""helm/: what can be set, as values, schema and comments say, and the versions that are named."""

import json
import re
from itertools import pairwise

import yaml

from service import __version__
from tests.support.pages import named_rows
from tests.support.paths import ROOT

CHART = ROOT / "helm"
VALUES = (CHART / "values.yaml").read_text("utf-8")


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


def test_the_chart_s_readme_has_every_table_of_the_values():
    """Once."""
    text = (CHART / "README.md").read_text("utf-8")
    named = [name for cells in named_rows(text) for name in re.findall(r"`(\w+)`", cells[0])]

    assert sorted(yaml.safe_load(VALUES)) == sorted(name for name in named if name != "values")


def test_the_versions_are_those_that_the_tests_run():
    """The service's own, Ray's and vLLM's, wherever they are written."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    values = yaml.safe_load(VALUES)
    locks = {name: (ROOT / f"requirements{name}.lock").read_text("utf-8") for name in ("-ray", "-vllm")}

    assert __version__ == chart["appVersion"] == chart["version"]
    assert f"\nray=={values['ray']['version']}\n" in locks["-ray"]
    assert f"\nvllm-cpu=={values['questionLlm']['image'].rpartition(':v')[2]}\n" in locks["-vllm"]
