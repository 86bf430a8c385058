"""Which metrics are on offer, and the models and question styles behind them."""

from collections.abc import Mapping, Sequence

from service.core.errors import UnknownMetric
from service.metrics.common.contract import Metric, MetricOptions
from service.questions.style import Style
from service.serving.handle import Handle
from service.serving.runtime import Runtime

IN_WORDS = {
    "questions": "the question LLM",
    "vqa": "the VQA model",
    "clip": "the CLIP model",
    "nli": "the NLI model",
    "ocr": "the OCR model",
    "detector": "the detector",
}


class MetricCatalog:
    """
    What can be scored with a runtime's models.

    Args:
        known: every metric that is declared.

    Attributes:
        defaults: the options of each metric that a request says nothing about.
        configured: those whose models are all configured, by name.
    """

    def __init__(self, known: Mapping[str, Metric], runtime: Runtime) -> None:
        self._known, self._runtime = known, runtime
        self.defaults = {name: metric.options() for name, metric in known.items()}
        self.configured: dict[str, Metric] = {
            name: metric
            for name, metric in known.items()
            if all(runtime.handle(part.name, role) for part in self._asked(name) for role in part.roles)
        }

    @property
    def metrics(self) -> dict[str, Metric]:
        """Those that are served, by name: configured, and with models that can be of use to them."""
        if not any(handle.backend.refuses for handle in self._runtime.handles.values()):
            return self.configured
        return {name: metric for name, metric in self.configured.items() if not self._refusal(name)}

    def _refusal(self, name: str) -> str:
        """Why a model is of no use to the metric *name*, or to one of its parts; empty where all are."""
        for part in self._asked(name):
            for role in part.roles:
                handle = self._runtime.handle(part.name, role)
                if handle and part.name in handle.backend.refuses:
                    return (
                        f"models.{handle.name} cannot serve {part.name}: {handle.backend.refuses[part.name]}"
                    )
        return ""

    def _asked(self, name: str) -> list[Metric]:
        """The metrics whose models the metric *name* asks: itself, or the parts of a composite."""
        return [self._known[part] for part in self._known[name].asks(self.defaults[name])]

    def degraded(self, name: str) -> str:
        """
        Which models of the metric *name*, or of its parts, failed, and how; empty where none did.

        That is a served model whose last calls or whose probe failed, and a model that some requests do
        without and that does not serve.  The metric is tried all the same.
        """
        states = {
            f"{IN_WORDS.get(role, f'the {role} model')} (models.{handle.name})": state
            for part in self._asked(name)
            for role in part.all_roles
            if (handle := self._runtime.handle(part.name, role))
            and (state := handle.backend.failing or (handle.backend.missing if role in part.may_use else ""))
        }
        return "; ".join(f"{model}: {state}" for model, state in states.items())

    def absent(self, name: str) -> str:
        """Why the metric *name* is not served, and what is; empty where it is served."""
        if name in self.metrics:
            return ""
        reason = "there is no such metric here"
        if name in self._known:
            roles = ", ".join(self._known[name].roles)
            reason = f"{name} is not served, since no model is configured for its roles: {roles}"
            if self._known[name].own_model:
                reason = f"{name} needs a model of its own, named by the setting metrics.{name}.model"
        if name in self.configured:
            reason = f"{name} is not served, since {self._refusal(name)}"
        return f"{reason}; this server has: {', '.join(self.metrics)}"

    def handles(self, metrics: Sequence[str]) -> dict[str, Handle]:
        """The handles of the models that *metrics* may ask, by configured name.  Raises `UnknownMetric`."""
        for name in metrics:
            if reason := self.absent(name):
                raise UnknownMetric(reason)
        asked = [part for name in metrics for part in self._asked(name)]
        used = [self._runtime.handle(metric.name, role) for metric in asked for role in metric.all_roles]
        return {handle.name: handle for handle in used if handle is not None}

    def style(self, name: str, options: Mapping[str, MetricOptions]) -> tuple[Style, Handle | None]:
        """
        The question style of that name, or of the metric of that name, as *options* by metric have it.

        With it comes the LLM that writes it, if one is configured.
        """
        asking = [m for m in self._known.values() if m.style and name in (m.name, m.style.name)]
        metric = min(asking, key=lambda metric: metric.name != name)  # the style's own, if there is one
        style = metric.style_with(options.get(metric.name) or self.defaults[metric.name])
        return style, self._runtime.handle(metric.name, "questions")
