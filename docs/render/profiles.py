"""`profiles.md`: the shipped profiles, by the comments at their beginnings and the models that they name."""

import re
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path

from docs.render.markdown import code, join, table
from models.core.settings import RemoteSettings
from service.core.settings.tree import Settings
from service.metrics.common.registry import assign, own
from service.wiring.load import PROFILES, load_settings

INTRO = """
# Shipped profiles

A profile names the models with all their settings. `--config` takes a file, or one of these names ([how to
start one](../models.md#profiles)). The memory is that of the weights, of CUDA, and of vLLM's share;
`scoregate-server check --config NAME` counts for your changes. **[Activations](../models.md#activations)
come on top.**
"""
METRICS = """
## Which metric runs where

Without a question LLM, a request brings the [question sets](../api.md#reproducible-scores). [What a metric
costs](../choosing.md#what-a-metric-costs) has the calls.
"""
SUM = re.compile(r"^# +sum +([\d.]+)", re.MULTILINE)


def page() -> str:
    """Return the page: the profiles, and the metrics that each serves."""
    files = sorted(PROFILES.glob("*.toml"), key=lambda file: (file.stem != "demo", file.stem))
    profiles = {file: load_settings(file, {}) for file in files}
    named = {file.stem: served(settings) for file, settings in profiles.items()}
    without = own().keys() - {metric for found in named.values() for metric in found}
    rows = [
        [
            code(name),
            code(*(m for m, alone in found.items() if alone)),
            code(*(m for m, alone in found.items() if not alone)),
        ]
        for name, found in named.items()
    ]
    return join(
        INTRO,
        table(
            ("profile", "memory, GB", "servers that it calls", "for"),
            (row(*each) for each in profiles.items()),
        ),
        METRICS,
        table(("profile", "metrics", "with sets of the request"), rows),
        f"No profile has models for {code(*sorted(without))}.",
    )


def row(file: Path, settings: Settings) -> list[str]:
    """Return the row of a profile."""
    text = file.read_text("utf-8")
    lines = takewhile(lambda line: line.strip("# "), text.splitlines())
    said = " ".join(line.removeprefix("# ") for line in lines)
    total = SUM.search(text)
    remote = {table.base_url for table in settings.models.values() if isinstance(table, RemoteSettings)}
    return [code(file.stem), total[1] if total else "", code(*sorted(remote)), said]


def served(settings: Settings) -> Mapping[str, bool]:
    """Return the metrics that have their models; False if they need a caller's question sets."""
    assigned = assign(own(), settings)
    return {
        metric.name: not metric.style or (metric.name, "questions") in assigned
        for metric in own().values()
        if metric.roles and all((metric.name, role) in assigned for role in metric.roles)
    }
