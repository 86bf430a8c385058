"""The score of a multimodal reranker for a prompt and a picture."""

from math import inf
from typing import Literal

from typing_extensions import TypedDict

from models.core.calls import RerankCall
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls


class RerankScoreOptions(MetricOptions):
    """
    Options of `rerankscore`.

    Attributes:
        output: `logit` does not saturate near 0 and 1, as rewards of reinforcement learning need.
    """

    output: Literal["probability", "logit"] = "probability"


class RerankScoreDetails(TypedDict):
    """Details of `rerankscore`."""

    output: str


async def rerankscore(item: Item, models: ModelCalls, options: RerankScoreOptions) -> Score:
    """Return P("yes") of the reranker that the image is a document for the prompt, or its logit."""
    call = RerankCall(item.image, item.prompt, activated=options.output == "probability")
    [result] = await models.ask("reranker", [call])
    details: RerankScoreDetails = {"output": options.output}
    return Score(result.value, details)


metric = Metric(
    "rerankscore",
    rerankscore,
    options=RerankScoreOptions,
    details=RerankScoreDetails,
    roles=("reranker",),
    range=lambda options: (0, 1) if options.output == "probability" else (-inf, inf),
    formula='P("yes" | prompt, picture) of a reranker',
    paper="Li et al. 2026, arXiv 2601.04720",
)
