"""
All metrics: those declared in this package, one per file, and those of other packages; what a profile sets.

Other packages declare metrics by entry points of the group `scoregate.metrics`.  A profile sets the models of
their roles, further question styles, and the metric of dialects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, cast

from pydantic import ValidationError, create_model, model_validator

from models.families.registry import with_plugins
from service import metrics as package
from service.core.fields import first_fault
from service.core.settings import SettingsError
from service.core.settings.dialects import Dialects
from service.core.settings.tree import Settings
from service.metrics.common.contract import Metric, MetricOptions
from service.questions.style import Style, styles_of

GROUP = "scoregate.metrics"

Assignment = Mapping[tuple[str, str], str]
"""The configured name of the model that serves each (metric, role)."""


@cache
def metrics() -> Mapping[str, Metric]:
    """Return every metric by name.  Raises `PluginError` if a package's metric cannot be used."""
    return with_plugins(own(), GROUP, Metric)


def own() -> dict[str, Metric]:
    """Return the metrics of this package, the default first: the `metric` of each module."""
    modules = [import_module(f"{package.__name__}.{info.name}") for info in iter_modules(package.__path__)]
    declared = [vars(module).get("metric") for module in modules]
    metrics = [metric for metric in declared if isinstance(metric, Metric)]
    return {metric.name: metric for metric in sorted(metrics, key=lambda metric: not metric.default)}


def configured(metrics: Mapping[str, Metric], settings: Settings) -> dict[str, Metric]:
    """Return *metrics* with those that the settings make of some.  Raises `SettingsError`."""
    known = {}
    for metric in metrics.values():
        for each in metric.configure(settings) if metric.configure else [metric]:
            known[each.name] = each
    return known


def assign(metrics: Mapping[str, Metric], settings: Settings) -> dict[tuple[str, str], str]:
    """
    Return the model's configured name by (metric, role); a role without a model is left out.

    A metric's table names its models, also for the metrics of its outputs; the default is the first model of
    the role.  A metric that *is* its
    weights (PickScore) has only the model that its table names, and no other metric uses that model.

    Raises:
        SettingsError: a table names an unknown metric, role or model, or the wrong model.
    """
    chosen = {metric: chosen_models(metrics, metric, settings) for metric in settings.metrics}
    owned = {
        name
        for metric, roles in chosen.items()
        if metrics[metric].own_model
        for role, name in roles.items()
        if name != role
    }
    assigned = {}
    for metric in metrics.values():
        for role in metric.all_roles:
            free = (n for n, m in settings.models.items() if m.role == role and n not in owned)
            default = None if metric.own_model else next(free, None)
            if name := chosen.get(metric.name.partition(".")[0], {}).get(role, default):
                assigned[metric.name, role] = name
    return assigned


def chosen_models(metrics: Mapping[str, Metric], name: str, settings: Settings) -> dict[str, str]:
    """Return the models by role from the table of the metric *name*; the key `model` means its role."""
    if name not in metrics:
        raise SettingsError(f"metrics.{name}: there is no such metric; there are {', '.join(metrics)}")
    roles = metrics[name].all_roles
    if not settings.metrics[name]:
        raise SettingsError(f"metrics.{name}: the table is empty; name a model in it, or remove it")
    chosen: dict[str, str] = {}
    for key, model in settings.metrics[name].items():
        table = settings.models.get(model)
        role = key if key != "model" else table.role if table else ""
        if key != "model" and key not in roles:
            known = f"its roles are: {', '.join(roles)}" if roles else "it uses no model"
            raise SettingsError(f"metrics.{name}.{key}: {name} has no such role; {known}")
        if table is None or table.role != role or role not in roles:
            raise SettingsError(f"metrics.{name}.{key}: {model!r} is not a model that it can use")
        if chosen.setdefault(role, model) != model:
            raise SettingsError(f"metrics.{name}: names two models for the role {role}")
    return chosen


def styled(metrics: Mapping[str, Metric], settings: Settings) -> dict[str, Metric]:
    """Return *metrics*, those with question sets with the profile's styles.  Raises `SettingsError`."""
    own = {name: metric.style_of().name for name, metric in metrics.items() if metric.style}
    found = styles_of(settings.questions.styles, {*metrics, *own.values()})
    return {
        name: with_styles(metric, found[own[name]]) if own.get(name) in found else metric
        for name, metric in metrics.items()
    }


def with_styles(metric: Metric, styles: Mapping[str, Style]) -> Metric:
    """Return *metric* with the option `style`, the name of one of *styles*."""

    def compatible(options: Any) -> Any:
        if options.style and metric.style_of(options) is not metric.style_of():
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
        return styles[options.style] if options.style else metric.style_of(options)

    options = cast(type[MetricOptions], create_model(metric.options.__name__, **fields))
    return replace(metric, options=options, style=style_of, styles=styles)


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
    options = {name: options_of(known[name], given) for name, given in settings.options.items()}
    return Rewards(settings.metric or default, options)


def check_rewards(known: Mapping[str, Metric], assigned: Assignment, settings: Dialects) -> None:
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


def options_of(metric: Metric, given: Mapping[str, object]) -> MetricOptions:
    """Return the options of *metric*.  Raises `SettingsError`."""
    try:
        return metric.options.model_validate(given)
    except ValidationError as exc:
        raise SettingsError(first_fault(exc, "dialects.options", metric.name)) from exc
