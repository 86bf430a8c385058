"""
`scoregate health`: the readiness and the models of the service.

Prints `ready`, or why not, the models, the metrics, and those that are degraded.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import scoregate
from scoregate.cli.arguments import NO_SCORE, OK, UNREACHABLE, connected, described
from scoregate.results import demos
from scoregate.text import complain, say, shown, table

TIMEOUT_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Return 0 if it is ready, 1 if it is not, 3 if there is no such service."""
    with connected(arguments, TIMEOUT_S, retries=0) as client:
        try:
            ready, answer = client.ready()
        except scoregate.ScoregateError as exc:  # no service, or something else
            complain(f"scoregate: {described(exc)}")
            return UNREACHABLE
        models = models_of(client)
    notes = demos({model["name"]: model["id"] for model in models.get("models", [])})
    if arguments.json:
        reasons = {} if ready else {"detail": answer.get("detail", "")}
        print(json.dumps({"ready": ready, **reasons, **models, **({"warnings": notes} if notes else {})}))
    else:
        degraded = degraded_of(models)
        state = f"ready; degraded: {', '.join(chain(*degraded.values()))}" if degraded else "ready"
        print(state if ready else f"not ready: {shown(answer.get('detail', ''))}")
        say(*(f"warning: {note}" for note in notes))
        if models:
            print(f"\n{as_text(models)}")
        for reason, metrics in degraded.items():
            print(f"\n{' '.join(metrics)} degraded: {shown(reason)}")
    return OK if ready else NO_SCORE


def models_of(client: scoregate.Client) -> dict[str, Any]:
    """Return the models and the metrics; empty, with a line on stderr, if the request fails."""
    try:
        answer = client.models()
    except scoregate.ScoregateError as exc:
        complain(f"scoregate: the models are not known: {described(exc)}")
        return {}
    return {"models": answer["models"], "metrics": answer["metrics"]}


def degraded_of(models: dict[str, Any]) -> dict[str, list[str]]:
    """Return the metrics whose model failed recently, by the reason."""
    degraded: dict[str, list[str]] = {}
    for name, metric in models.get("metrics", {}).items():
        if reason := metric.get("degraded"):
            degraded.setdefault(reason, []).append(name)
    return degraded


def as_text(models: dict[str, Any]) -> str:
    """Return two tables: the models, and what they can score."""
    metrics = [
        [name, " ".join(metric["models"]), "yes" if metric["ready"] else "no"]
        for name, metric in models["metrics"].items()
    ]
    return "\n\n".join(
        (
            models_table(models["models"]),
            table(["METRIC", "MODELS", "READY"], metrics),
        )
    )


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
