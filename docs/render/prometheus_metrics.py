"""`prometheus-metrics.md`: the instruments with the closed sets of their labels."""

from collections.abc import Iterable, Mapping
from typing import Any

from docs.render.app import service_with_all
from docs.render.markdown import code, join, table

INTRO = """
# Prometheus metrics

`GET /metrics` exports these; with `server.metrics_port`, on that port only and without a key. All label
values are fixed at the start, and every combination that the served models, metrics and routes can have
starts at 0. [Watching](../operations/watching.md) has the dashboard, the alerts and queries.
"""
PROCESS = """
There are also metrics of the process, such as `process_resident_memory_bytes`, `process_cpu_seconds_total`
and `process_open_fds`.
"""
VALUES = """
## Label values

`model` and `policy` are names of tables under `models` and `policies`, `metric` is the name of a metric,
and `device` is `cuda:0` and so on, or `ray:` and the id of a replica. The route `other` stands for all
other paths, and for requests that were rejected before routing.
"""
OURS = "scoregate_"
OPEN = ("model", "metric", "policy", "device", "version")  # their values are not the service's to choose


def page() -> str:
    """Return the page: each instrument, and the values of each label."""
    service = service_with_all()
    service.instruments.add_device("clip", "cuda:0", float)
    service.instruments.gpu_memory.elsewhere["cuda:0"] = dict.fromkeys(("allocated", "reserved", "total"), 1)
    every = {name_of(family): family for family in service.instruments.registry.collect()}
    ours = {name: family for name, family in every.items() if name.startswith(OURS)}
    rows = [
        [code(name), family.type, code(*labels_of(family)), family.documentation]
        for name, family in ours.items()
    ]
    return join(
        INTRO,
        table(["Prometheus metric", "type", "labels", "meaning"], rows),
        PROCESS,
        VALUES,
        table(["label", "of", "values"], values_of(ours)),
    )


def name_of(family: Any) -> str:
    """Return the name of the series."""
    return f"{family.name}_total" if family.type == "counter" else str(family.name)


def labels_of(family: Any) -> dict[str, dict[str, None]]:
    """Return the labels of the series with their values, both in their order."""
    found: dict[str, dict[str, None]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            if label != "le":
                found.setdefault(label, {})[value] = None
    return found


def values_of(families: Mapping[str, Any]) -> Iterable[list[str]]:
    """Return a row for each label and each of its sets of values."""
    users: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, family in families.items():
        for label, values in labels_of(family).items():
            if label not in OPEN:
                users.setdefault((label, tuple(values)), []).append(name)
    return [[code(label), code(*names), code(*values)] for (label, values), names in users.items()]
