"""
OpenRLHF's remote reward model: `POST /get_reward`.

```sh
--reward.remote_url http://127.0.0.1:8001/get_reward              # OpenRLHF
--rm-type remote_rm --rm-url http://127.0.0.1:8001/remote_rm      # slime
```

A path selects another metric: `http://127.0.0.1:8001/clipscore/get_reward`. Both trainers send a prompt, a
response and a label. The picture is in one of them, as a `data:` URI, as `{"image": …}`, or in a part of a
message; a label may be an allowed URL:

| picture | scored with |
|---|---|
| in the label or the prompt | the response, such as a caption |
| the response | the label if it is a text, else the last text of the prompt |

OpenRLHF sends no response of its own: it is what follows the prompt in the query, without the tokens that end
it. A VLM's repeated placeholders of a picture count as one.

A sample without a score fails the request, also if its response is empty. OpenRLHF then tries five times and
logs `Failed to fetch reward`, and its training ends at the missing reward. slime tries ten times, and the
rollout fails.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from service.core.errors import Invalid
from service.core.settings.dialects import MAX_IMAGES
from service.web.dialects.registry import Dialect
from service.web.dialects.samples import pair, response_in
from service.web.dialects.scoring import Wanted, values_of
from service.web.dialects.wire import IMAGE_LIST, ImageSource, Loose, dialects_of, failed, read_as
from service.web.endpoints import json_response, service_of
from service.web.problems import errors_in

router = APIRouter(include_in_schema=False)
dialect = Dialect("openrlhf", router, clients="OpenRLHF")

Labels = Annotated[list[Any], Field(max_length=MAX_IMAGES)]


class OpenRlhfRequest(Loose):
    """
    The body: each query is a prompt with the response, as the tokenizer decodes both.

    Attributes:
        query: the prompt with the response, of each sample.
        prompts: the prompt alone.
        labels: a text or a picture of each sample.
    """

    query: Annotated[list[str], IMAGE_LIST]
    prompts: Annotated[list[str], IMAGE_LIST]
    labels: Labels | None = None

    def pairs(self) -> list[tuple[str, ImageSource]]:
        """Return the text and the picture of each sample.  Raises `Invalid`."""
        labels = self.labels or [None] * len(self.query)
        if not len(self.query) == len(self.prompts) == len(labels):
            given = f"{len(self.query)} queries, {len(self.prompts)} prompts and {len(labels)} labels"
            raise Invalid(f"{given}; send one of each for a sample")
        found = []
        for number, (query, prompt, label) in enumerate(zip(self.query, self.prompts, labels, strict=True)):
            place = f"sample {number}"
            found.append(pair(prompt, response_in(query, prompt, place), label, place))
        return found


@router.post("/get_reward")
@errors_in(failed)
async def get_reward(request: Request) -> Response:
    """Return the reward of each sample, by the metric of the settings."""
    return await answered(request, dialects_of(request).metric(None))


@router.post("/{metric}/get_reward")
@errors_in(failed)
async def get_reward_by(request: Request) -> Response:
    """Return rewards by the metric in the path."""
    return await answered(request, dialects_of(request).metric_of_path(request.path_params["metric"]))


async def answered(request: Request, metric: str) -> Response:
    """Score the samples by *metric*.  Raises the most important error if one has no score."""
    pairs = await read_as(request, OpenRlhfRequest, OpenRlhfRequest.pairs)
    dialects_of(request).check_shard(len(pairs))
    wanted = [Wanted(text, image, (metric,)) for text, image in pairs]
    timeout_s = service_of(request).settings.dialects.timeouts_s.openrlhf
    outcomes = await dialects_of(request).scored(request, wanted, timeout_s, in_windows=True)
    scores = values_of(outcomes, metric, "sample")
    return json_response({"rewards": scores, "scores": scores, "extra_logs": {metric: scores}})
