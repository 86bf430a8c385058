"""
CLIP-I (Ruiz et al. 2023, "DreamBooth"): the likeness of a picture to references, without a prompt.

The likeness of a picture to the item's `references`, such as photos of the subject that it should show:

    score = mean over the references r of cos(E_image, E_r)

That is CLIP-I of the DreamBooth paper (section 4.1) for one generated picture; the paper's number is the
mean over all of them. The prompt is not used. `of_references: "closest"` is the largest cosine instead of
the mean. An item without references is `missing_picture`.
"""

from statistics import fmean
from typing import Literal

import numpy as np
from typing_extensions import TypedDict

from models.core.calls import ImageCall
from service.core.errors import MissingImage
from service.metrics.common.contract import REFERENCES, Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.serving.admission import Demand

ROLE = "clip"


class ClipIOptions(MetricOptions):
    """
    Options of `clip_i`.

    Attributes:
        of_references: the mean over an item's references, as in the paper, or the closest one alone.
    """

    of_references: Literal["mean", "closest"] = "mean"


class ClipIDetails(TypedDict):
    """
    Details of `clip_i`.

    Attributes:
        cosines: with each reference, in order.
    """

    cosines: list[float]


async def clip_i(item: Item, models: ModelCalls, options: ClipIOptions) -> Score:
    """
    Return the mean of cos(E_image, E_reference) over the item's references, from -1 to 1 (section 4.1).

    The prompt is not used.

    Raises:
        MissingImage: the item has no references.
    """
    if not item.references:
        raise MissingImage("clip_i needs the item's references, and it has none")
    seen, *others = await models.ask(ROLE, [ImageCall(image) for image in (item.image, *item.references)])
    vector = seen.vector.astype(float)
    cosines = [float(np.dot(vector, other.vector.astype(float))) for other in others]
    details: ClipIDetails = {"cosines": cosines}
    return Score(fmean(cosines) if options.of_references == "mean" else max(cosines), details)


metric = Metric(
    "clip_i",
    clip_i,
    options=ClipIOptions,
    details=ClipIDetails,
    roles=(ROLE,),
    demand_of=lambda prompt, options: {ROLE: Demand(2)},
    range=(-1, 1),
    formula="mean over the references of cos(E_image, E_reference), whatever the prompt",
    paper="Ruiz et al. 2023, arXiv 2208.12242",
    uses=(REFERENCES,),
    needs="references",
    reads_prompt=False,
)
