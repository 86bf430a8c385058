"""
How safe a picture is to show: one minus the probability that it is of an unsafe kind.

A classifier of pictures decides, whose unsafe labels its table names
([`image_classifier`](models.md#image_classifier)):

    score = 1 - Σ P(label) over the unsafe labels

or a VLM that answers "Yes" if a picture is against the text of a policy, such as ShieldGemma 2 (Zeng et al.
2025; [`openai_safety`](models.md#openai)):

    score = 1 - P("Yes") / (P("Yes") + P("No"))

In a policy, combine it with a metric that reads the prompt: `vqascore >= 0.6 and safety >= 0.9`. For several
frames set `frames: "min"`, since by default one unsafe frame among many changes the mean little.
"""

from typing_extensions import TypedDict

from models.core.calls import RewardCall
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls

ROLE = "safety"


class SafetyDetails(TypedDict):
    """
    Details of `safety`.

    Attributes:
        unsafe: the probability of each unsafe label, in the order of the settings, or that of the VLM's
            "Yes".
    """

    unsafe: list[float]


async def safety(item: Item, models: ModelCalls, options: MetricOptions) -> Score:
    """Return one minus the probability that the image is of an unsafe kind."""
    [found] = await models.ask(ROLE, [RewardCall(item.image)])
    details: SafetyDetails = {"unsafe": [*found.outputs[1:]]}
    return Score(found.value, details)


metric = Metric(
    "safety",
    safety,
    details=SafetyDetails,
    roles=(ROLE,),
    range=(0, 1),
    formula="1 - the probability of all unsafe labels",
    paper="Zeng et al. 2025, arXiv 2504.01081",
    reads_prompt=False,
)
