"""Metrics with the question styles of a profile, which requests choose by the option `style`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from pydantic import create_model, model_validator

from service.core.settings.tree import Settings
from service.metrics.common.contract import Metric, MetricOptions
from service.questions.style import Style, styles_of


def styled(metrics: Mapping[str, Metric], settings: Settings) -> dict[str, Metric]:
    """Return *metrics*, those with question sets with the profile's styles.  Raises `SettingsError`."""
    own = [metric.style.name for metric in metrics.values() if metric.style]
    found = styles_of(settings.questions.styles, {*metrics, *own})
    return {
        name: with_styles(metric, found[metric.style.name])
        if metric.style and metric.style.name in found
        else metric
        for name, metric in metrics.items()
    }


def with_styles(metric: Metric, styles: Mapping[str, Style]) -> Metric:
    """Return *metric* with the option `style`, the name of one of *styles*."""

    def compatible(options: Any) -> Any:
        if options.style and metric.style_with(options) is not metric.style:
            raise ValueError("style: cannot be combined with an option that changes the metric's own style")
        return options

    names: Any = Literal[tuple(styles)]
    fields: dict[str, Any] = {
        "__base__": metric.options,
        "__doc__": metric.options.__doc__,
        "__validators__": {"compatible": model_validator(mode="after")(compatible)},
        "style": (names | None, None),
    }

    def style_of(options: Any) -> Style:
        return styles[options.style] if options.style else metric.style_with(options)

    options = cast(type[MetricOptions], create_model(metric.options.__name__, **fields))
    return replace(metric, options=options, style_of=style_of, styles=styles)
