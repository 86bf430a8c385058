"""Named outputs: numbers of a metric's details as metrics, `METRIC.OUTPUT`, from the same calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from service.core.errors import ScoregateError
from service.core.settings.tree import Settings
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls


@dataclass(frozen=True, slots=True)
class OutputMetric(Metric):
    """The score of one output of another metric, from the calls of that metric."""

    def asks(self, options: MetricOptions) -> Mapping[str, MetricOptions]:
        """Return the metric that has the output."""
        return {self.name.partition(".")[0]: options}


async def score_of(metric: str, item: Item, models: ModelCalls, options: MetricOptions) -> Score:
    """Return the score of the metric that has an output.  Raises its error."""
    result: Score | ScoregateError = (await models.score(item, {metric: options}))[metric]
    if isinstance(result, ScoregateError):
        raise result
    return result


def output_metric(metric: Metric, output: str, formula: str, bounds: tuple[float, float]) -> OutputMetric:
    """
    Return the metric whose score is the number *output* of the details of *metric*.

    Args:
        formula: of the output, in one line.
        bounds: the least and the largest number.
    """

    async def score(item: Item, models: ModelCalls, options: MetricOptions) -> Score:
        """Return the output; the details are those of the whole metric, whose error is raised."""
        result = await score_of(metric.name, item, models, options)
        return Score(result.details[output], result.details, result.cache, result.warnings)

    return OutputMetric(
        f"{metric.name}.{output}",
        score,
        options=metric.options,
        details=metric.details,
        roles=metric.roles,
        demand_of=metric.demand_of,
        range=bounds,
        formula=formula,
        paper=metric.paper,
        own_model=metric.own_model,
        uses=metric.uses,
        needs=metric.needs,
    )


def with_outputs(
    metric: Metric, outputs: Mapping[str, str], bounds: tuple[float, float] = (-inf, inf)
) -> Metric:
    """
    Return *metric*, and a metric for each of its *outputs*.

    Those of a metric that is its weights are there if the settings name a model for it.

    Args:
        outputs: their formulas by name.
        bounds: the least and the largest number of an output.
    """
    parts = [output_metric(metric, name, formula, bounds) for name, formula in outputs.items()]

    def configured(settings: Settings) -> Sequence[Metric]:
        return [whole, *parts] if not metric.own_model or metric.name in settings.metrics else [whole]

    whole = replace(metric, configure=configured)
    return whole
