"""Assignment of configured models to the roles of metrics."""

from collections.abc import Mapping

from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.common.contract import Metric

Assignment = Mapping[tuple[str, str], str]


def assign(metrics: Mapping[str, Metric], settings: Settings) -> dict[tuple[str, str], str]:
    """
    Return the model's configured name by (metric, role); a role without a model is left out.

    A metric's table names its models; the default is the first model of the role.  A metric that *is* its
    weights (PickScore) has only the model that its table names, and no other metric uses that model.

    Raises:
        SettingsError: a table names an unknown metric, role or model, or the wrong model.
    """
    chosen = {metric: choices(metrics, metric, settings) for metric in settings.metrics}
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
            if name := chosen.get(metric.name, {}).get(role, default):
                assigned[metric.name, role] = name
    return assigned


def choices(metrics: Mapping[str, Metric], name: str, settings: Settings) -> dict[str, str]:
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
