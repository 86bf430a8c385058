"""The metric and options of dialects, whose requests often name no metric and never have options."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from service.core.settings import SettingsError
from service.core.settings.dialects import Dialects
from service.metrics.common.assignment import Assignment
from service.metrics.common.contract import Metric, MetricOptions


@dataclass(frozen=True, slots=True)
class Rewards:
    """
    The metric and options of requests in dialects.

    Attributes:
        metric: of requests that name none.
        options: by metric, if they differ from the defaults.
    """

    metric: str
    options: Mapping[str, MetricOptions]


def rewards(known: Mapping[str, Metric], settings: Dialects) -> Rewards:
    """
    Read the settings of dialects.

    Raises:
        SettingsError: an unknown metric, or options that it does not have.
    """
    for place, name in [("metric", settings.metric), *(("options", name) for name in settings.options)]:
        if name and name not in known:
            raise SettingsError(f"dialects.{place}: there is no metric {name}; there are {', '.join(known)}")
    default = next(name for name, metric in known.items() if metric.default or name == settings.metric)
    options = {name: read(known[name], given) for name, given in settings.options.items()}
    return Rewards(settings.metric or default, options)


def check(known: Mapping[str, Metric], assigned: Assignment, settings: Dialects) -> None:
    """
    Check the table before anything is loaded.

    Args:
        assigned: the models by metric and role.

    Raises:
        SettingsError: see `rewards`; also if there is no model for the metric.
    """
    rewards(known, settings)
    if settings.metric:
        parts = known[settings.metric].asks(known[settings.metric].options())
        lacking = {role for name in parts for role in known[name].roles if (name, role) not in assigned}
        if lacking:
            roles = ", ".join(sorted(lacking))
            raise SettingsError(f"dialects.metric: {settings.metric} has no model for its roles: {roles}")


def read(metric: Metric, given: Mapping[str, object]) -> MetricOptions:
    """Return the options of *metric*.  Raises `SettingsError`."""
    try:
        return metric.options.model_validate(given)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(("dialects.options", metric.name, *map(str, first["loc"])))
        raise SettingsError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from exc
