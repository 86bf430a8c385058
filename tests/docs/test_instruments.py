"""docs/instruments.md: every instrument with its labels and their values."""

import re

from service.telemetry import Instruments
from tests.docs.pages import fences, named_rows, page, rows, section

PAGE = "instruments.md"
MODELS = ("clip", "vqa", "questions")


def test_every_instrument_is_documented_with_its_labels_and_no_other():
    """Name, type and labels stand in the first table of docs/instruments.md."""
    documented = {
        cells[0].strip("`"): (cells[1], set(re.findall(r"`(\w+)`", cells[2])))
        for cells in named_rows(page(PAGE).split("\n## ", 1)[0])
    }
    existing = {}
    for family in Instruments(MODELS).registry.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = {label for sample in family.samples for label in sample.labels}
        existing[name] = (family.type, labels - {"le"})

    assert existing == documented


def test_every_label_value_is_documented_and_no_other():
    """The second table of docs/instruments.md lists the closed sets."""
    documented: dict[str, set[str]] = {}
    for cells in rows(section(PAGE, "## Label values")):
        if label := re.match(r"`(\w+)`", cells[0]):
            documented.setdefault(label[1], set()).update(re.findall(r"`([^`]+)`", cells[1]))
    existing: dict[str, set[str]] = {}
    for family in Instruments(MODELS).registry.collect():
        for sample in family.samples:
            for label, value in sample.labels.items():
                existing.setdefault(label, set()).add(value)
    del existing["le"]
    assert set(MODELS) == existing.pop("model")

    assert existing == documented


def test_queries_name_instruments_that_exist():
    """The PromQL of docs/instruments.md uses series that this service exposes."""
    series = {sample.name for family in Instruments(MODELS).registry.collect() for sample in family.samples}
    queries = [text for _, text in fences(PAGE, "promql")]

    assert queries
    assert {name for query in queries for name in re.findall(r"scoregate_\w+", query)} <= series
