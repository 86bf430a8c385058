"""
HPSv3++ (Liu et al. 2026): people's preference for a picture of a prompt, for generators in training.

μ of HPSv3++, for pictures of generators of any capability. `progress`, from 0 (default) to 1, is the
progress of the generator's own training by rewards; its authors raise it linearly from 0.3 to 1 in a
training. A picture's score does not depend on the others: the released code infers one capability for all
pictures of a batch.
"""

from math import exp, inf
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from models.core.calls import ProgressCall
from models.families.hpsv3pp import REPOSITORY
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.outputs import with_outputs

ROLE = "hpsv3pp"


class Hpsv3ppOptions(MetricOptions):
    """
    Options of `hpsv3pp`.

    Attributes:
        progress: of the generator's training by rewards, 0 to 1; the authors raise it linearly from 0.3 to 1.
    """

    progress: Annotated[float, Field(ge=0, le=1)] = 0.0


class Hpsv3ppDetails(TypedDict):
    """
    Details of `hpsv3pp`.

    Attributes:
        mu, sigma: the outputs of the model's head, as the released code returns them.
        deviation: exp(sigma), the standard deviation of the preference in the model's training.
        capability: of the picture's generator, inferred by the model, 0 to 1.
    """

    mu: float
    sigma: float
    deviation: float
    capability: float


async def hpsv3pp(item: Item, models: ModelCalls, options: Hpsv3ppOptions) -> Score:
    """Return mu, the mean of the preference; the other outputs are in the details."""
    [found] = await models.ask(ROLE, [ProgressCall(item.image, item.prompt, options.progress)])
    mu, sigma, capability = found.outputs
    details: Hpsv3ppDetails = {"mu": mu, "sigma": sigma, "deviation": exp(sigma), "capability": capability}
    return Score(mu, details)


OUTPUTS = {
    "mu": "μ, the head's first output",
    "sigma": "the head's second output",
    "capability": "the capability of the picture's generator, 0 to 1, as the model infers it",
}

metric = with_outputs(
    Metric(
        "hpsv3pp",
        hpsv3pp,
        options=Hpsv3ppOptions,
        details=Hpsv3ppDetails,
        roles=(ROLE,),
        range=(-inf, inf),
        formula="μ, the first output of the model's head",
        paper="Liu et al. 2026, arXiv 2606.14657",
        own_model=True,
        weights=REPOSITORY,
    ),
    OUTPUTS,
)
