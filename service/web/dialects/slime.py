"""
slime's remote reward model, `--rm-type remote_rm`: `POST /remote_rm` with one sample.

Its trainer takes the body of the response as the reward, and after ten errors the rollout fails.
"""

from typing import Any

from fastapi import APIRouter, Request, Response

from service.web.dialects.registry import Dialect
from service.web.dialects.samples import pair
from service.web.dialects.scoring import Wanted, values_of
from service.web.dialects.wire import ImageSource, Loose, dialects_of, failed, read_as
from service.web.endpoints import json_response, service_of
from service.web.problems import errors_in

router = APIRouter(include_in_schema=False)
dialect = Dialect("slime", router, clients="slime")


class SlimeRequest(Loose):
    """
    The body.

    Attributes:
        prompt: a text, or messages.
        response: what the model wrote, or the picture.
        label: a text or a picture.
    """

    prompt: Any = None
    response: Any = None
    label: Any = None

    def pair(self) -> tuple[str, ImageSource]:
        """Return the text and the picture.  Raises `Invalid`."""
        return pair(self.prompt, self.response, self.label, "sample 0")


@router.post("/remote_rm")
@errors_in(failed)
async def remote_rm(request: Request) -> Response:
    """Return the reward of the sample, by the metric of the settings."""
    return await answered(request, dialects_of(request).metric(None))


@router.post("/{metric}/remote_rm")
@errors_in(failed)
async def remote_rm_by(request: Request) -> Response:
    """Return the reward by the metric in the path."""
    return await answered(request, dialects_of(request).metric_of_path(request.path_params["metric"]))


async def answered(request: Request, metric: str) -> Response:
    """Score the sample by *metric*.  Raises its error if it has no score."""
    text, image = await read_as(request, SlimeRequest, SlimeRequest.pair)
    timeout_s = service_of(request).settings.dialects.timeouts_s.slime
    outcomes = await dialects_of(request).scored(request, [Wanted(text, image, (metric,))], timeout_s)
    [score] = values_of(outcomes, metric, "sample")
    return json_response(score)
