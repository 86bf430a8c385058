"""The plan of a run, from its arguments and `GET /models`."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from scoregate.cli.arguments import metrics_of, options_of
from scoregate.cli.datasets import Dataset
from scoregate.cli.exits import UsageFault
from scoregate.cli.lines import Plan
from scoregate.direction import lower_is_better


def plan_of(arguments: argparse.Namespace, served: Mapping[str, Any]) -> Plan:
    """Return the plan: options and models.  Raises `UsageFault` for an unknown metric."""
    metrics = metrics_of(arguments)
    known = served["metrics"]
    if unknown := [metric for metric in metrics if metric not in known]:
        raise UsageFault(f"no metric {', '.join(unknown)}; the service has {', '.join(known)}")
    ids = {model["name"]: label_of(model) for model in served["models"]}
    used = chain.from_iterable(known[metric]["models"] for metric in metrics)
    uses = chain.from_iterable(known[metric].get("uses", ()) for metric in metrics)
    return Plan(
        metrics,
        {name: ids[name] for name in sorted(set(used))},
        options_of(arguments),
        arguments.explain,
        sorted(set(uses)),
        [name for name in metrics if lower_is_better(known[name])],
        arguments.any_models,
        arguments.strict,
    )


def label_of(model: Mapping[str, str]) -> str:
    """Return the name that answers give a model of `GET /models`."""
    plain = f"{model['id']}@{model['revision']}" if model["revision"] else model["id"]
    return model.get("label") or plain


def with_question_sets(dataset: Dataset, served: Mapping[str, Any]) -> Dataset:
    """Return *dataset* whose column `question_set` pins the sets of those metrics that have some."""
    asking = [name for name in dataset.metrics if served["metrics"].get(name, {}).get("style")]
    return replace(dataset, asking=asking)
