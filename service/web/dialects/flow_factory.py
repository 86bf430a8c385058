"""
Flow-Factory's reward server: `POST /compute`; `GET /health` is the public API's.

```yaml
rewards:
  - name: vqascore
    reward_model: flow_factory.rewards.my_reward_remote.RemotePointwiseRewardModel
    server_url: http://127.0.0.1:8001
    batch_size: 16
    async_reward: true
    num_workers: 4
```

`server_url: http://127.0.0.1:8001/clipscore` selects another metric than that of the settings. Training does
not start if no model serves it.

A permanent error is 200 with `{"error": "image 3: …"}`, which the client raises. After 503 and 500 it tries
three times. Videos and pictures to edit are rejected. The adapter is faster, and detects NaNs.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from service.core.errors import Invalid, NotReady, ScoregateError
from service.core.settings.dialects import MAX_IMAGES
from service.web.dialects.registry import Dialect
from service.web.dialects.scoring import Wanted, answer_to, is_temporary, values_of
from service.web.dialects.wire import Loose, PromptList, dialects_of, read_body
from service.web.endpoints import json_response, service_of
from service.web.problems import errors_in
from service.web.wire.requests import Base64Text

router = APIRouter(include_in_schema=False)
dialect = Dialect("flow_factory", router, clients="Flow-Factory")


class ComputeRequest(Loose):
    """
    Body of `POST /compute`: one picture for each prompt.

    Attributes:
        prompt: of each picture.
        image: in base64, one for each prompt.
        video, condition_images, condition_videos: rejected.
    """

    prompt: PromptList
    image: Annotated[list[Base64Text], Field(max_length=MAX_IMAGES, fail_fast=True)] | None = None
    video: Any = None
    condition_images: Any = None
    condition_videos: Any = None

    def image_sources(self) -> Sequence[Base64Text]:
        """Return the pictures.  Raises `Invalid` if any is missing, or for other inputs."""
        for field in ("video", "condition_images", "condition_videos"):
            if getattr(self, field):
                raise Invalid(f"{field}: only pictures are scored here, and against their prompts alone")
        if not self.image or len(self.image) != len(self.prompt):
            given = len(self.image or ())
            raise Invalid(f"image: {given} pictures for {len(self.prompt)} prompts; send one for each")
        return self.image


def failed(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error in the form that the client raises."""
    status, headers = answer_to(error)
    status = status if is_temporary(error) or error.status >= 500 else 200
    return json_response({"error": error.detail, "code": error.code}, status, headers)


@router.post("/compute")
@errors_in(failed)
async def compute(request: Request) -> Response:
    """Return the reward of each picture, by the metric of the settings."""
    return await answered(request, dialects_of(request).metric(None))


@router.post("/{metric}/compute")
@errors_in(failed)
async def compute_by(request: Request) -> Response:
    """Return rewards by the metric in the path: several rewards have several addresses."""
    return await answered(request, dialects_of(request).metric_of_path(request.path_params["metric"]))


@router.get("/{metric}/health")
async def health_of(request: Request) -> Response:
    """Return 200 if the metric is ready; otherwise training does not start."""
    service = service_of(request)
    metric = dialects_of(request).metric_of_path(request.path_params["metric"])
    reasons = [*service.missing(service.metrics[metric]), service.engine.catalog.degraded(metric)]
    if any(reasons):
        raise NotReady("; ".join(filter(None, reasons)))
    return json_response({"status": "ok"})


async def answered(request: Request, metric: str) -> Response:
    """Score the pictures by *metric*.  Raises the most important error if one has no score."""
    return json_response({"rewards": await rewards(request, metric)})


async def rewards(request: Request, metric: str) -> list[float]:
    """Return one score per picture.  Raises the most important error if one has none."""
    wire = await read_body(request, ComputeRequest)
    dialects_of(request).check_shard(len(wire.prompt))
    wanted = [
        Wanted(prompt, image, (metric,))
        for prompt, image in zip(wire.prompt, wire.image_sources(), strict=True)
    ]
    timeout_s = service_of(request).settings.dialects.timeouts_s.flow_factory
    outcomes = await dialects_of(request).scored(request, wanted, timeout_s, in_windows=True)
    return values_of(outcomes, metric, "image")
