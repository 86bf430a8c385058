"""
`scoregate health`: the readiness and the models of the service.

Prints `ready`, or why not, the models, the metrics, and those that are degraded.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from scoregate.cli.arguments import NO_SCORE, OK, UNREACHABLE, described, service_of
from scoregate.inventory import Health, health
from scoregate.text import complain, say, shown, table

TIMEOUT_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Return 0 if it is ready, 1 if it is not, 3 if there is no such service."""
    found = health(service_of(arguments, TIMEOUT_S))
    if found.fault:
        what = "the models are not known: " * found.reached
        complain(f"scoregate: {what}{described(found.fault)}")
    if not found.reached:  # no service, or something else
        return UNREACHABLE
    if arguments.json:
        print(json.dumps(found.as_json()))
    else:
        print_text(found)
    return OK if found.ready else NO_SCORE


def print_text(found: Health) -> None:
    """Print the state, the tables, and why metrics are degraded."""
    degraded = found.degraded
    state = f"ready; degraded: {', '.join(chain(*degraded.values()))}" if degraded else "ready"
    print(state if found.ready else f"not ready: {shown(found.detail)}")
    say(*(f"warning: {note}" for note in found.warnings))
    if not found.fault:
        print(f"\n{as_text(found)}")
    for reason, metrics in degraded.items():
        print(f"\n{' '.join(metrics)} degraded: {shown(reason)}")


def as_text(found: Health) -> str:
    """Return two tables: the models, and what they can score."""
    metrics = [
        [name, " ".join(metric["models"]), "yes" if metric["ready"] else "no"]
        for name, metric in found.metrics.items()
    ]
    return f"{models_table(found.models)}\n\n{table(['METRIC', 'MODELS', 'READY'], metrics)}"


def models_table(models: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of models."""
    rows = [
        [
            model["name"],
            model["role"],
            f"{model['id']}@{model['revision']}" if model["revision"] else model["id"],
            model["device"],
            "yes" if model["ready"] else "no",
        ]
        for model in models
    ]
    return table(["MODEL", "ROLE", "ID", "DEVICE", "READY"], rows)
