"""Options of metrics in requests: those of an item override those of its request, and both the defaults."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationInfo

from service.core.fields import Strict
from service.metrics.common.contract import MetricOptions


class Options(Strict):
    """Options by metric."""


def of_the_request(options: Options, info: ValidationInfo) -> Options:
    """Store the shared options in the context, for items with options of their own."""
    if info.context is not None:
        info.context["options"] = options
    return options


def over_the_requests(own: Any, info: ValidationInfo) -> Any:
    """Merge an item's own options over those of the request, by metric and option."""
    shared = (info.context or {}).get("options")
    if shared is None or not isinstance(own, dict):
        return own
    merged = sent(shared)
    for metric, options in own.items():
        both = metric in merged and isinstance(options, dict)
        merged[metric] = {**sent(merged[metric]), **options} if both else options
    return merged


def sent(options: BaseModel) -> dict[str, Any]:
    """Return the fields that the request sets."""
    return {name: getattr(options, name) for name in options.model_fields_set}


def options_of(options: Options, metrics: Sequence[str]) -> dict[str, MetricOptions]:
    """Return the options of each requested metric; an output's are by default those of its metric."""
    given = options.model_fields_set
    return {
        name: getattr(options, whole if name not in given and whole in given else name)
        for name in metrics
        if name in type(options).model_fields and (whole := name.partition(".")[0])
    }
