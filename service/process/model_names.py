"""A profile from the names of its models, as `serve --model NAME` has them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from models.core.machine import THIS_MACHINE, Machine
from models.core.settings import DeviceSettings, LocalSettings
from models.families.names import table_of
from models.families.registry import families
from service.core.settings import SettingsError
from service.metrics.common.contract import Metric
from service.metrics.common.registry import metrics

Tree = dict[str, Any]


def profile_of(
    names: Iterable[str], server: Tree, devices: Sequence[str], dtype: str, machine: Machine = THIS_MACHINE
) -> Tree:
    """
    Return the profile that has the models *names*.

    Args:
        server: settings of the section `server`.
        devices: for every model that computes here; by default the first GPU, or the CPU without one.
        dtype: for every model that has one; by default bfloat16 on a GPU, but for exact families.

    Raises:
        CheckpointError: a name is not a model.
        SettingsError: two models have one role, and no metric would use the second.
    """
    devices = devices or (["cuda:0"] if machine.gpu_count() else ["cpu"])
    tables: dict[str, Tree] = {}
    chosen: dict[str, Tree] = {}
    first: dict[str, str] = {}
    for given in names:
        table = table_of(repository_of(given))
        role = table["role"]
        metric = metric_of(given, role)
        name = metric or role
        if name in first:
            raise SettingsError(
                f"--model {given}: no metric would use it: --model {first[name]} has the same role, {role};"
                " in a profile each metric can name a model of its own"
            )
        first[name] = given
        if name == role:  # a name is the role by default
            del table["role"]
        if metric:
            chosen[metric] = {"model": name}
        family = families()[table["family"]]
        if issubclass(family.settings, DeviceSettings):
            table |= placed(devices)
        if issubclass(family.settings, LocalSettings):
            exact = devices[0].startswith("cpu") or family.exact
            table["dtype"] = dtype or ("float32" if exact else "bfloat16")
        tables[name] = table
    return {
        key: value for key, value in {"server": server, "models": tables, "metrics": chosen}.items() if value
    }


def repository_of(given: str) -> str:
    """Return the hub's repository of the weights of the metric *given*, in any case; else *given*."""
    own = (each.weights for each in metrics().values() if each.weights and each.name == given.lower())
    return given if Path(given).is_dir() else next(own, given)


def metric_of(given: str, role: str) -> str | None:
    """Return the metric that is the weights of the model *given*, and is served by no other model."""
    own = (each.name for each in metrics().values() if each.weights == repository_of(given))
    return next(own, only_metrics().get(role))


def only_metrics() -> dict[str, str]:
    """Return the metrics that are their weights, by role, where no other metric has the role."""
    users: dict[str, list[Metric]] = {}
    for metric in metrics().values():
        for role in metric.all_roles:
            users.setdefault(role, []).append(metric)
    return {role: metric.name for role, (metric, *others) in users.items() if metric.own_model and not others}


def placed(devices: Sequence[str]) -> Tree:
    """Return the setting for *devices*."""
    if devices == ["all"]:
        return {"devices": "all"}
    return {"device": devices[0]} if len(devices) == 1 else {"devices": [*devices]}


def as_toml(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """Format tables of strings, numbers, booleans and lists as TOML."""
    values = {key: value for key, value in tree.items() if not isinstance(value, Mapping)}
    lines = [f"[{'.'.join(path)}]"] if path and values else []
    lines += [f"{key} = {as_value(value)}" for key, value in values.items()]
    inner = [as_toml(value, (*path, key)) for key, value in tree.items() if isinstance(value, Mapping)]
    return "\n\n".join(filter(None, ["\n".join(lines), *inner]))


def as_value(value: Any) -> str:
    """Format a value as JSON that is TOML, too: without pairs of surrogates, and with DEL escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
