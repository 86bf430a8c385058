"""ITMScore: the probability that a prompt describes an image, by image-text matching (Li et al. 2023)."""

from math import inf, tanh
from typing import Literal

from typing_extensions import TypedDict

from models.core.calls import RewardCall
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.observability.notes import Code, Note

ROLE = "itm"
CUT = Note(Code.PROMPT_TRUNCATED, "the prompt was cut at 35 tokens of the matching model")


class ItmScoreOptions(MetricOptions):
    """Options of `itmscore`."""

    output: Literal["probability", "logit"] = "probability"


class ItmScoreDetails(TypedDict):
    """Details of `itmscore`."""

    probability: float
    logit: float


async def itmscore(item: Item, models: Models, options: ItmScoreOptions) -> Score:
    """Return P(match), the logistic function of the model's output, or that output."""
    [found] = await models.ask(ROLE, [RewardCall(item.image, item.prompt)])
    details: ItmScoreDetails = {"probability": 0.5 + 0.5 * tanh(found.value / 2), "logit": found.value}
    warnings = (CUT,) if found.truncated else ()
    return Score(details[options.output], details, warnings=warnings)


def range_of(options: ItmScoreOptions) -> tuple[float, float]:
    """Return the range of an output; a logit has no bounds."""
    return (0, 1) if options.output == "probability" else (-inf, inf)


metric = Metric(
    "itmscore",
    itmscore,
    options=ItmScoreOptions,
    details=ItmScoreDetails,
    roles=(ROLE,),
    range=range_of,
    formula="P(match), the softmax of the two logits of an image-text matching head",
    paper="Li et al. 2023, arXiv 2301.12597",
)
