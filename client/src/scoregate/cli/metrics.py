"""
`scoregate metrics`: the metrics of the service, with their models and options.

With names it prints the options with their defaults:

```console
$ scoregate metrics clipscore
clipscore: by clip
OPTION   DEFAULT
frames   "mean"
share    0.5
samples  null
scale    "cosine"
prefix   null
```
"""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from scoregate.cli.arguments import OK, add_settings, service_of, settings_of
from scoregate.inventory import MetricsSettings, metrics
from scoregate.text import shown, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_settings(parser, MetricsSettings)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print a table of all metrics, or the options of those that are named."""
    settings = settings_of(MetricsSettings, arguments)
    chosen = metrics(settings, service_of(arguments))
    if arguments.json:
        print(json.dumps(chosen))
    else:
        print(as_text(chosen) if settings.names else listed(chosen))
    return OK


def listed(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a row for each metric: whether it is served, and by which models, or what it needs."""
    rows = [
        [
            name,
            "no" if not each["served"] else "yes" if each["ready"] else "not ready",
            each.get("reason") or needs(each),
            " ".join(each["options"]),
        ]
        for name, each in metrics.items()
    ]
    return table(["METRIC", "SERVED", "NEEDS", "OPTIONS"], rows)


def needs(metric: Mapping[str, Any]) -> str:
    """Return the models that a served metric uses, and what its items must have."""
    models = ", ".join(metric["models"])
    return f"{models}; {metric['needs']}" if metric.get("needs") else models


def as_text(metrics: Mapping[str, Mapping[str, Any]]) -> str:
    """Return each metric with its options and their defaults."""
    parts = []
    for name, each in metrics.items():
        state = f"by {needs(each) or 'no model'}" if each["served"] else f"not served: {each['reason']}"
        rows = [[option, json.dumps(value)] for option, value in each["options"].items()]
        facts = [f"{shown(name)}: {shown(state)}"]
        facts += [each["only"]] if each.get("only") else []
        parts.append("\n".join([*map(shown, facts), table(["OPTION", "DEFAULT"], rows)]))
    return "\n\n".join(parts)
