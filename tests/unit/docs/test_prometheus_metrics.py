"""docs/prometheus-metrics.md: every instrument with its labels and their values."""

import json
import re

import pytest

from service.observability.instruments import Instruments
from service.observability.logs import FIELDS
from tests.support.pages import fences, named_rows, page, rows, section

PAGE = "prometheus-metrics.md"
OPEN = {
    "model",
    "metric",
    "policy",
    "device",
    "version",
}  # labels whose values are not the service's to choose


@pytest.fixture
def families(monkeypatch):
    """All that is scraped of a service with a GPU."""
    kinds = ("allocated", "reserved", "total")
    monkeypatch.setattr(
        "service.observability.instruments.gpu_memory", lambda: [("cuda:0", kind, 1) for kind in kinds]
    )
    instruments = Instruments(("clip", "vqa", "questions"), {"half": (0, 1)}, ["show"])
    instruments.add_device("clip", "cuda:0", float)
    return list(instruments.registry.collect())


def ours(families):
    """The instruments of the service, by name."""
    named = {family.name + ("_total" if family.type == "counter" else ""): family for family in families}
    return {name: family for name, family in named.items() if name.startswith("scoregate_")}


def test_every_instrument_is_documented_with_its_labels_and_no_other(families):
    """Name, type and labels stand in the first table of docs/prometheus-metrics.md."""
    documented = {
        cells[0].strip("`"): (cells[1], set(re.findall(r"`(\w+)`", cells[2])))
        for cells in named_rows(page(PAGE).split("\n## ", 1)[0])
    }
    existing = {
        name: (family.type, {label for sample in family.samples for label in sample.labels} - {"le"})
        for name, family in ours(families).items()
    }

    assert existing == documented


def test_every_label_value_is_documented_and_no_other(families):
    """The second table of docs/prometheus-metrics.md lists the closed sets; routes are added by the apps."""
    documented: dict[str, set[str]] = {}
    for cells in rows(section(PAGE, "## Label values")):
        if label := re.match(r"`(\w+)`", cells[0]):
            documented.setdefault(label[1], set()).update(re.findall(r"`([^`]+)`", cells[1]))
    existing: dict[str, set[str]] = {}
    for family in ours(families).values():
        for sample in family.samples:
            for label, value in sample.labels.items():
                existing.setdefault(label, set()).add(value)

    assert "route" in documented.keys() & existing.keys()
    del documented["route"], existing["route"]
    assert existing.keys() - documented.keys() == OPEN | {"le"}
    assert {label: existing[label] for label in documented} == documented


def test_the_figures_of_the_process_that_are_named_exist(families):
    """Those that Prometheus' client adds."""
    named = set(re.findall(r"`((?:process|python)_\w+)`", page(PAGE)))

    assert named
    assert named <= {sample.name for family in families for sample in family.samples}


def test_queries_name_series_and_labels_that_exist(families):
    """The PromQL of docs/prometheus-metrics.md can be run against this service."""
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
