"""`metrics.md`: what each metric declares, and what its module says of it."""

import sys
from collections.abc import Iterator
from math import isinf
from typing import Any, get_args

from pydantic import TypeAdapter
from typing_extensions import get_type_hints, is_typeddict

from docs.render.app import settings
from docs.render.markdown import code, inherited, join, prose, table, value
from docs.render.schema import named, words
from service.metrics.common.contract import Metric, MetricOptions
from service.metrics.common.outputs import OutputMetric
from service.metrics.common.registry import configured, own

INTRO = """
# Metrics

What each metric is, the models and inputs that it needs, its options in `options.METRIC` and its `details`
with `explain`. [Choosing](../choosing.md) helps to choose. A text that is too long for a model is
truncated, with a [warning](api.md#warnings).

## All metrics

The range is that of the default options. *Roles* are the models that a metric needs, *may use* those that
only some options need. A metric that is its *own model* is served only if [its
table](configuration.md#metricsmetric) names one. Higher is better for all.
"""
OPTIONS = """
## Options of every metric

An item's own `options` override those of the request, option by option. A *template* has one `{}`, replaced
by the prompt, or by the question if the metric has questions. A *question set* is an id, or 1 to 64
questions ([how sets are fixed](../api.md#reproducible-scores)). An option that another one makes useless
gives the warning `option_unused`.
"""
FRAMES = """
## Frames

`details.METRIC.frames` has an object for each of several frames, with its `score`, of a video also its
number `frame` and its time `time_s`. A grid is `details.METRIC.grid`, with `side`, the cells in a row.
"""


def page() -> str:
    """Return the page: all metrics, the options of all, and a section for each."""
    heads = ["metric", "range", "roles", "may use", "own model", "paper"]
    return join(
        INTRO,
        table(heads, map(row, own().values())),
        OPTIONS,
        options_table(MetricOptions, ()),
        FRAMES,
        *(part for metric in own().values() for part in section(metric)),
    )


def row(metric: Metric) -> list[str]:
    """Return the row of a metric."""
    linked = f"[`{metric.name}`](#{metric.name})"
    models = [code(*metric.roles), code(*metric.may_use), "yes" if metric.own_model else ""]
    return [linked, "{} to {}".format(*map(bound, metric.range_of())), *models, metric.paper]


def bound(number: float) -> str:
    """Return the end of a range."""
    return ("−" if number < 0 else "") + ("∞" if isinf(number) else f"{abs(number):.3g}")


def section(metric: Metric) -> Iterator[str]:
    """Yield the section of a metric."""
    yield f"## {metric.name}"
    said = prose(sys.modules[metric.score.__module__].__doc__)
    yield said
    if metric.formula and "    score" not in said:
        yield f"    score = {metric.formula}"
    yield " ".join(each for each in facts(metric) if each not in said)
    yield options_table(metric.options, MetricOptions.model_fields)
    outputs = [[code(each.name), each.formula] for each in outputs_of(metric)]
    yield table(("metric of one output", "score"), outputs)
    yield table(("detail", "value", "meaning"), details(metric.details))


def facts(metric: Metric) -> Iterator[str]:
    """Yield sentences about what a metric needs."""
    if not metric.reads_prompt:
        yield "The prompt is not used."
    if metric.needs:
        yield f"An item needs {metric.needs}."
    uses = metric.uses_of()
    if uses and not metric.needs:
        yield f"Some options use {' and '.join(code(each) for each in uses)}."
    for role, what in (metric.without or {}).items():
        yield f"Without a model in the role `{role}` it scores {what}."
    if metric.weights:
        yield f"`--model {metric.name}` loads `{metric.weights}`."


def kind_of(schema: dict[str, Any]) -> str:
    """Return the type of an option."""
    found = words(schema, named)
    return "question set" if "Question" in found else found


def options_table(kind: type[MetricOptions], shared: Any) -> str:
    """Return the table of a metric's options, without those of every metric."""
    schemas, about = kind.model_json_schema()["properties"], inherited(kind)
    defaults = kind().model_dump(mode="json")
    rows = [
        [code(name), value(defaults[name]), kind_of(schema), about.get(name, "")]
        for name, schema in schemas.items()
        if name not in shared
    ]
    return table(("option", "default", "value", "meaning"), rows)


def outputs_of(metric: Metric) -> list[OutputMetric]:
    """Return the metrics of its outputs, which it has where the settings name a model for it."""
    if metric.configure is None:
        return []
    with_model = settings().model_copy(update={"metrics": {metric.name: {}}})
    made = configured({metric.name: metric}, with_model).values()
    return [each for each in made if isinstance(each, OutputMetric)]


def details(kind: Any, place: str = "") -> Iterator[list[str]]:
    """Yield a row for each field of the details, and for each field of the objects in their lists."""
    if not is_typeddict(kind):
        return
    schemas, about, hints = (
        TypeAdapter(kind).json_schema()["properties"],
        inherited(kind),
        get_type_hints(kind),
    )
    for name, schema in schemas.items():
        nested = next((each for each in get_args(hints[name]) if is_typeddict(each)), None)
        shown = "" if nested else words(schema, named)
        yield [code(place + name), shown, about.get(name, "")]
        if nested:
            yield from details(nested, f"{place}{name}[].")
