"""
All metrics: those declared in this package, one per file, and those of other packages.

Other packages declare metrics by entry points of the group `scoregate.metrics`.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from models.families.registry import with_plugins
from service import metrics as package
from service.metrics.common.contract import Metric

GROUP = "scoregate.metrics"


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
