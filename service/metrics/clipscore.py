"""
CLIPScore (Hessel et al. 2021) as text-to-image papers use it.

The cosine of the picture's and the prompt's embedding, as in t2v_metrics.
"""

from typing import Literal

from typing_extensions import TypedDict

from service.core.fields import Prompt
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls, cosine_demand
from service.metrics.common.texts import prefixed

FACTORS = {"hessel": 2.5, "geneval": 100}  # factors on max(cos, 0)


class ClipScoreOptions(MetricOptions):
    """
    Options of `clipscore`.

    Attributes:
        scale: `"hessel"`: 2.5 · max(cos, 0), as in the CLIPScore paper, whose `prefix` is `"A photo
            depicts"`; `"geneval"`: 100 · max(cos, 0), as in the GenEval paper, appendix C.3, with OpenCLIP's
            ViT-H/14.
        prefix: a text before the prompt, followed by a space.
    """

    scale: Literal["cosine", "hessel", "geneval"] = "cosine"
    prefix: Prompt | None = None

    def text(self, prompt: str) -> str:
        """Return the text that CLIP gets."""
        return prefixed(self.prefix, prompt)


class ClipScoreDetails(TypedDict):
    """Details of `clipscore`."""

    cosine: float
    scale: str


async def clipscore(item: Item, models: ModelCalls, options: ClipScoreOptions) -> Score:
    """
    Return cos(E_image, E_prompt), as VQAScore's authors compute it (t2v_metrics, open_clip).

    `scale: "hessel"` gives the original 2.5 * max(cos, 0), and `"geneval"` 100 * max(cos, 0), which GenEval's
    paper compares itself with (Ghosh et al. 2023, appendix C.3).  The original also has `prefix` "A photo
    depicts".
    """
    cosine, warnings = await models.clip.cosine(item.image, options.text(item.prompt))
    factor = FACTORS.get(options.scale)
    value = factor * max(cosine, 0.0) if factor else cosine
    details: ClipScoreDetails = {"cosine": cosine, "scale": options.scale}
    return Score(value, details, warnings=warnings)


metric = Metric(
    "clipscore",
    clipscore,
    options=ClipScoreOptions,
    details=ClipScoreDetails,
    roles=("clip",),
    demand_of=lambda prompt, options: cosine_demand(options.text(prompt), options),
    range=lambda options: (0, FACTORS[options.scale]) if options.scale in FACTORS else (-1, 1),
    formula="cos(E_image, E_prompt)",
    paper="Hessel et al. 2021, arXiv 2104.08718",
)
