"""
ITMScore: the probability that a prompt describes a picture, by image-text matching (Li et al. 2023).

P(match), the softmax of the two logits of a head on BLIP (Li et al. 2022, arXiv 2201.12086) or BLIP-2, as
in LAVIS and t2v_metrics. BLIP-2's logits are the mean over its queries, BLIP's those of the first token,
`[ENC]` (transformers has `[CLS]`, and another number). The prompt has at most 35 tokens.
"""

from math import inf, tanh
from typing import Literal

from typing_extensions import TypedDict

from models.core.calls import ContrastCall, RewardCall
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.observability.notes import Code, Note

ROLE = "itm"
PROMPT_CUT_NOTE = Note(Code.PROMPT_TRUNCATED, "the prompt was cut at 35 tokens of the matching model")


class ItmScoreOptions(MetricOptions):
    """
    Options of `itmscore`.

    Attributes:
        output: `"probability"` (default): P(match), 0 to 1; `"logit"`: log P(match) - log P(no match),
            without bounds; `"itc"`: the contrastive score, the cosine of the embeddings of picture and
            prompt; of BLIP-2 with the closest of its queries, -1 to 1; `"itm_itc"`: the head's output for a
            match plus that cosine, by which the released code of both papers ranks for retrieval, without
            bounds
    """

    output: Literal["probability", "logit", "itc", "itm_itc"] = "probability"


class ItmScoreDetails(TypedDict):
    """
    Details of `itmscore`.

    Attributes:
        logit: log P(match) - log P(no match).
        match: the head's output for a match; null with the outputs of ITM alone, as is the cosine.
        cosine: of the embeddings of picture and prompt.
    """

    probability: float
    logit: float
    match: float | None
    cosine: float | None


async def itmscore(item: Item, models: ModelCalls, options: ItmScoreOptions) -> Score:
    """
    Return P(match), the logistic function of the model's output, or another output.

    By "itm_itc" the released code of BLIP and BLIP-2 ranks for retrieval.
    """
    cosine = match = None
    if options.output in ("probability", "logit"):
        [found] = await models.ask(ROLE, [RewardCall(item.image, item.prompt)])
        logit = found.value
        value = probability(logit) if options.output == "probability" else logit
    else:
        [found] = await models.ask(ROLE, [ContrastCall(item.image, item.prompt)])
        cosine, none, match = found.outputs
        logit = match - none
        value = cosine if options.output == "itc" else match + cosine
    details: ItmScoreDetails = {
        "probability": probability(logit),
        "logit": logit,
        "match": match,
        "cosine": cosine,
    }
    return Score(value, details, warnings=(PROMPT_CUT_NOTE,) if found.truncated else ())


def probability(logit: float) -> float:
    """Return the logistic function of *logit*."""
    return 0.5 + 0.5 * tanh(logit / 2)


RANGES = {"probability": (0, 1), "logit": (-inf, inf), "itc": (-1, 1), "itm_itc": (-inf, inf)}


metric = Metric(
    "itmscore",
    itmscore,
    options=ItmScoreOptions,
    details=ItmScoreDetails,
    roles=(ROLE,),
    range=lambda options: RANGES[options.output],
    formula="P(match), the softmax of the two logits of an image-text matching head",
    paper="Li et al. 2023, arXiv 2301.12597",
)
