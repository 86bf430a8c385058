"""The pages about Prometheus metrics: what they name exists."""

import json
import re

import pytest

from service.observability.instruments import Instruments
from service.observability.logs import FIELDS
from tests.support.pages import fences, page

PAGE = "operations/watching.md"
FILTERED = re.compile(r"\^scoregate_\(([\w|]+)\)")  # in a pattern of grep


@pytest.fixture
def families():
    """All that is scraped of a service with a GPU."""
    instruments = Instruments(("clip", "vqa", "questions"), {"half": (0, 1)}, ["show"])
    instruments.add_device("clip", "cuda:0", float)
    instruments.gpu_memory.elsewhere["cuda:0"] = dict.fromkeys(("allocated", "reserved", "total"), 1)
    return list(instruments.registry.collect())


def test_the_figures_of_the_process_that_are_named_exist(families):
    """Those that Prometheus' client adds."""
    named = set(re.findall(r"`((?:process|python)_\w+)`", page("reference/prometheus-metrics.md")))

    assert named
    assert named <= {sample.name for family in families for sample in family.samples}


def test_the_series_that_commands_filter_exist(families):
    """Those after `grep` on the pages for operators."""
    samples = {sample.name for family in families for sample in family.samples} | {
        f"{family.name}_total" for family in families
    }
    for name in ("operations/runbooks.md", "guides/troubleshooting.md"):
        named = [f"scoregate_{each}" for group in FILTERED.findall(page(name)) for each in group.split("|")]

        assert named
        assert {*named} <= samples | {family.name for family in families}


def test_queries_name_series_and_labels_that_exist(families):
    """The PromQL of docs/operations/watching.md can be run against this service."""
    labels: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    queries = [text for _, text in fences(PAGE, "promql")]

    assert queries
    for query in queries:
        series = re.findall(r"((?:scoregate|process)_\w+)(?:\{(.*?)\})?", query)
        known = set().union(*(labels[name] for name, _ in series)) | {"instance"}
        asked = {label for _, chosen in series for label in re.findall(r"(\w+)=", chosen)}
        grouped = {
            label for named in re.findall(r"(?:by|on|left) \((.*?)\)", query) for label in named.split(", ")
        }
        assert series
        assert asked | grouped <= known


def test_the_access_line_shown_has_fields_that_are_logged():
    """And no other."""
    [line] = [json.loads(text) for _, text in fences(PAGE, "json")]

    assert line.keys() - {"time", "level", "logger", "event"} <= set(FIELDS)
