"""The metrics that are served, with their models and question styles."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from service.core.errors import UnknownMetric
from service.metrics.common.contract import Metric, MetricOptions
from service.questions.style import Style
from service.serving.handle import Handle
from service.serving.runtime import Runtime


def configured_metrics(
    known: Mapping[str, Metric], assigned: Collection[tuple[str, str]]
) -> dict[str, Metric]:
    """Return the metrics, by name, all of whose models are *assigned*, as pairs of metric and role."""

    def parts(metric: Metric) -> Iterator[tuple[str, str]]:
        yield from ((part, role) for part in metric.asks(metric.options()) for role in known[part].roles)

    return {name: metric for name, metric in known.items() if all(pair in assigned for pair in parts(metric))}


class MetricCatalog:
    """
    The metrics that can be scored with a runtime's models.

    Attributes:
        known: all declared metrics, by name.
        models: the handle of each role's model, by metric.
        defaults: the default options of each metric.
        configured: metrics whose models are all configured, by name.
        used: the handles of the models that each of these may use.
    """

    def __init__(self, known: Mapping[str, Metric], runtime: Runtime) -> None:
        self.known, self._runtime = known, runtime
        self.models = {
            name: {role: handle for role in metric.all_roles if (handle := runtime.handle(name, role))}
            for name, metric in known.items()
        }
        self.defaults = {name: metric.options() for name, metric in known.items()}
        assigned = {(name, role) for name, models in self.models.items() for role in models}
        self.configured = configured_metrics(known, assigned)
        self.used = {
            name: [
                handle
                for part in self._parts(name)
                for role in part.all_roles
                if (handle := self.models[part.name].get(role))
            ]
            for name in self.configured
        }
        # The models that each must have, with the name of the part that must have it.
        self._needed = {
            name: [
                (part.name, self.models[part.name][role]) for part in self._parts(name) for role in part.roles
            ]
            for name in self.configured
        }

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics that are served, by name: configured, and with suitable models."""
        return {name: metric for name, metric in self.configured.items() if self.serves(name)}

    def serves(self, name: str) -> bool:
        """Return True if *name* is one of `metrics`."""
        return name in self.configured and not self._refusal(name)

    def _refusal(self, name: str) -> str:
        """Return why a model is unsuitable for the metric *name* or one of its parts, or an empty string."""
        for part, handle in self._needed[name]:
            if reason := handle.backend.refuses.get(part):
                return f"models.{handle.name} cannot serve {part}: {reason}"
        return ""

    def _parts(self, name: str) -> list[Metric]:
        """Return the metrics whose models *name* uses: itself, or the parts of a composite."""
        return [self.known[part] for part in self.known[name].asks(self.defaults[name])]

    def degraded(self, name: str) -> str:
        """
        Return which models of the metric *name* or its parts failed, and how, or an empty string.

        A model has failed if its last calls or its probe failed, or if it is optional and not serving.  The
        metric is tried all the same.
        """
        states = {
            f"the {role} model (models.{handle.name})": state
            for part in self._parts(name)
            for role in part.all_roles
            if (handle := self.models[part.name].get(role))
            and (state := handle.backend.failing or (handle.backend.missing if role in part.may_use else ""))
        }
        return "; ".join(f"{model}: {state}" for model, state in states.items())

    def absent(self, name: str) -> str:
        """Return why the metric *name* is not served, and which are; an empty string if it is served."""
        if self.serves(name):
            return ""
        reason = "there is no such metric here"
        if name in self.known:
            reason = f"{name} is not served here: {self.lacking(name)}"
        return f"{reason}; this server has: {', '.join(self.metrics)}"

    def lacking(self, name: str) -> str:
        """Return why a declared metric is not served; an empty string if it is."""
        return self._refusal(name) if name in self.configured else f"it needs {self._needs(name)}"

    def _needs(self, name: str) -> str:
        """Return the models that would serve the metric *name*, and the setting that names its own."""
        metric = self.known[name]
        if metric.own_model:
            weights = f", such as {metric.weights}" if metric.weights else ""
            own = f"a model of its own in the role {', '.join(metric.roles)}{weights}"
            return f"{own}, named by the setting metrics.{name}.model"
        pairs = ((part.name, role) for part in self._parts(name) for role in part.roles)
        missing = dict.fromkeys(role for part, role in pairs if not self.models[part].get(role))
        return f"a model in the role {', '.join(missing)}"

    def handles(self, metrics: Sequence[str]) -> dict[str, Handle]:
        """Return the handles of the models that *metrics* may use, by name.  Raises `UnknownMetric`."""
        for name in metrics:
            if not self.serves(name):
                raise UnknownMetric(self.absent(name))
        return {handle.name: handle for name in metrics for handle in self.used[name]}

    def style(self, name: str, options: Mapping[str, MetricOptions]) -> tuple[Style, Handle | None]:
        """
        Return the question style of that name or of the metric of that name, and the LLM that writes it.

        Args:
            options: by metric; they may change the style.
        """
        metrics = [
            m for m in self.known.values() if m.style and name in (m.name, m.style_of().name, *m.styles)
        ]
        metric = min(metrics, key=lambda metric: metric.name != name)  # the style's own, if there is one
        style = metric.styles.get(name) or metric.style_of(
            options.get(metric.name) or self.defaults[metric.name]
        )
        return style, self.models[metric.name].get("questions")
