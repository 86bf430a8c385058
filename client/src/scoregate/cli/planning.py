"""The plan of a run, from its arguments and `GET /models`."""

import argparse
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import scoregate
from scoregate.answers import lower_is_better
from scoregate.cli.arguments import metrics_of, options_of
from scoregate.cli.datasets import Dataset
from scoregate.cli.exits import UsageFault
from scoregate.cli.lines import Plan
from scoregate.records import kind


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
        arguments.orient,
        served.get("limits", {}).get("max_image_bytes"),
    )


def label_of(model: Mapping[str, str]) -> str:
    """Return the name that answers give a model of `GET /models`."""
    plain = f"{model['id']}@{model['revision']}" if model["revision"] else model["id"]
    return model.get("label") or plain


def with_options(dataset: Dataset, served: Mapping[str, Any], client: scoregate.Client) -> Dataset:
    """Return *dataset* with the facts of the service that its columns of options are read by."""
    asking = [name for name in dataset.metrics if served["metrics"].get(name, {}).get("style")]
    texts = set[str]()
    if dataset.table is not None and kind(dataset.table) == ".csv":
        with suppress(scoregate.NotFound):  # behind a gateway that has no such path
            texts = texts_in(client.openapi())
    return replace(dataset, asking=asking, texts=texts)


def texts_in(document: Mapping[str, Any]) -> set[str]:
    """Return the options of an OpenAPI document that are texts, by `METRIC.OPTION`."""
    schemas = document.get("components", {}).get("schemas", {})

    def properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
        found = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
        return found.get("properties") or {}

    return {
        f"{metric}.{option}"
        for metric, schema in (schemas.get("Options", {}).get("properties") or {}).items()
        for option, each in properties(schema).items()
        if {kind.get("type") for kind in each.get("anyOf", [each])} - {"null"} == {"string"}
    }
