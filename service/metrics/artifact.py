"""
The share of a picture without visual artifacts (Eldesokey et al. 2026, "Skill-Aligned Annotation").

1 - the share of pixels with visual artifacts, which a model such as PAL4VST marks on the picture stretched
to 512 x 512 pixels. The prompt is not used.
"""

from typing_extensions import TypedDict

from models.core.calls import RewardCall
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls

ROLE = "artifact"


class ArtifactDetails(TypedDict):
    """
    Details of `artifact`.

    Attributes:
        artifact_ratio: the share of pixels that belong to artifacts.
    """

    artifact_ratio: float


async def artifact(item: Item, models: ModelCalls, options: MetricOptions) -> Score:
    """Return 1 - the artifact ratio, as in the released code; the model decides for each pixel (PAL4VST)."""
    [found] = await models.ask(ROLE, [RewardCall(item.image)])
    details: ArtifactDetails = {"artifact_ratio": found.value}
    return Score(1 - found.value, details)


metric = Metric(
    "artifact",
    artifact,
    details=ArtifactDetails,
    roles=(ROLE,),
    range=(0, 1),
    formula="1 - the share of pixels that belong to artifacts",
    paper="Zhang et al. 2023, arXiv 2310.05590",
    reads_prompt=False,
)
