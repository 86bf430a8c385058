"""Conversion of results to the page of `scoregate report`.  Needs the extra `evaluate`."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from scoregate.answers import is_number
from scoregate.cli.datasets import Dataset
from scoregate.cli.facts import Facts
from scoregate.cli.results import Results
from scoregate.cli.sheet import bytes_of
from scoregate.cli.thumbnails import data_uri
from scoregate.cli.warned import notices_of
from scoregate.report.page import page
from scoregate.report.rows import Columns, Cost, Details, Row, Scored

Run = Mapping[str, Any]


def columns_of(arguments: argparse.Namespace) -> Columns:
    """Return the columns given by arguments."""
    return Columns(arguments.human, arguments.model, arguments.item, arguments.skill)


def drawn(
    arguments: argparse.Namespace, dataset: Dataset, results: Results, facts: Facts, runs: Sequence[Run]
) -> str:
    """Return the page; *runs* are those of the manifest."""

    def details_of(wanted: set[int]) -> Mapping[int, Details]:
        return {each["row"]: each.get("details", {}) for each in results.lines() if each["row"] in wanted}

    def pictures_of(wanted: set[int]) -> Mapping[int, str]:
        return {row.number: data_uri(bytes_of(row)) for row in dataset if row.number in wanted}

    scored = Scored(
        name=dataset.path.resolve().name,
        drawn=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        rows=list(rows(results, facts)),
        metrics=results.plan.metrics,
        details_of=details_of,
        pictures_of=pictures_of,
        columns=columns_of(arguments),
        models=results.plan.models,
        options=results.plan.options,
        lower=frozenset(results.plan.lower),
        version=str(runs[-1].get("service", {}).get("version", "")) if runs else "",
        out_of_scale=facts.out_of_scale,
        cost=cost_of(runs, arguments.price_per_hour),
    )
    return page(scored, alpha=arguments.alpha, pictures=arguments.pictures)


def rows(results: Results, facts: Facts) -> Iterator[Row]:
    """Yield a row for each line, with its facts from the data set."""
    for line in results.lines():
        scores = line["scores"]
        details = line.get("details", {})
        yield Row(
            number=line["row"],
            image=line["image"] or "",
            prompt=line["prompt"] or "",
            scores=scores,
            errors=line["errors"],
            models=line.get("models", {}) if scores else {},
            warnings=notices_of(line),
            parts={name: parts for name in details if (parts := parts_of(details[name], scores.get(name)))},
            **vars(facts.of[line["row"]]),
        )


def parts_of(details: Any, score: float | None) -> Mapping[str, float]:
    """Return a picture's score by skill, or by GenEval's task; empty if the details have neither."""
    if not isinstance(details, Mapping):
        return {}
    skills, tag = details.get("skills"), details.get("tag")
    if isinstance(skills, Mapping):
        return {str(name): float(value) for name, value in skills.items() if is_number(value)}
    return {tag: score} if isinstance(tag, str) and score is not None else {}


def cost_of(runs: Sequence[Run], price_per_hour: float | None) -> Cost:
    """Return the sum of the runs that sent requests."""
    asking = [run for run in runs if run["requested"]]
    requested, cached, seconds = (
        sum(run[name] for run in asking) for name in ("requested", "cached", "seconds")
    )
    return Cost(len(asking), requested, cached, seconds, price_per_hour)
