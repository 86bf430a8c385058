"""A profile from the names of its models, as `serve --model NAME` has them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from models.core.copies import gpu_count
from models.core.settings import DeviceSettings, LocalSettings
from models.families.named import table_of
from models.families.registry import families
from service.metrics.common.contract import Metric
from service.metrics.common.registry import metrics

Tree = dict[str, Any]

EXACT_ROLES = ("clip", "imagereward")  # float32 by default: their profiles have it, and they are small


def profile_of(names: Iterable[str], server: Tree, devices: Sequence[str], dtype: str) -> Tree:
    """
    Return the profile that has the models *names*.

    Args:
        server: settings of the section `server`.
        devices: for every model that computes here; by default the first GPU, or the CPU without one.
        dtype: for every model that has one; by default bfloat16 on a GPU, but for CLIPs.

    Raises:
        CheckpointError: a name is not a model.
    """
    devices = devices or (["cuda:0"] if gpu_count() else ["cpu"])
    tables: dict[str, Tree] = {}
    chosen: dict[str, Tree] = {}
    for given in names:
        table = table_of(given)
        role = table["role"]
        metric = next((m.name for m in metrics().values() if m.weights == given), only_metrics().get(role))
        name = free_name(metric or role, tables)
        if name == role:  # which is the default
            del table["role"]
        if metric:
            chosen.setdefault(metric, {"model": name})
        kind = families()[table["family"]].settings
        if issubclass(kind, DeviceSettings):
            table |= placed(devices)
        if issubclass(kind, LocalSettings):
            exact = devices[0].startswith("cpu") or role in EXACT_ROLES
            table["dtype"] = dtype or ("float32" if exact else "bfloat16")
        tables[name] = table
    return {
        key: value for key, value in {"server": server, "models": tables, "metrics": chosen}.items() if value
    }


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


def free_name(wanted: str, taken: Mapping[str, Any]) -> str:
    """Return *wanted*, with a number if it is *taken*."""
    numbered = (f"{wanted}_{number}" for number in range(2, len(taken) + 3))
    return wanted if wanted not in taken else next(name for name in numbered if name not in taken)


def as_toml(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> str:
    """Format tables of strings, numbers, booleans and lists as TOML."""
    values = {key: value for key, value in tree.items() if not isinstance(value, Mapping)}
    lines = [f"[{'.'.join(path)}]"] if path and values else []
    lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    inner = [as_toml(value, (*path, key)) for key, value in tree.items() if isinstance(value, Mapping)]
    return "\n\n".join(filter(None, ["\n".join(lines), *inner]))
