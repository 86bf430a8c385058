"""
PromptRL's reward service: `POST /v1/rewards:score` with one video of a group, and `GET /healthz`.

Its client sends a group's videos at the same time, and again after any failure, with the same `request_id`.
Videos are scored as they come; the responses are sent when the whole group has scores.
"""

import asyncio
import hashlib
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field, ValidationError

from service.core.concurrency.disconnect import while_connected
from service.core.errors import Invalid, NotReady, ScoregateError, UnsupportedMediaType
from service.core.fields import Prompt
from service.core.settings.dialects import MOST_PICTURES
from service.images.sources import Encoded
from service.web.caller import header_timeout
from service.web.dialects.failures import answer_to
from service.web.dialects.promptrl.groups import Outcome
from service.web.dialects.scoring import Wanted
from service.web.dialects.wire import Loose, dialects_of
from service.web.problems import invalid
from service.web.routing import json_response, service_of
from service.web.server import body
from service.web.server.multipart import read_form

router = APIRouter(include_in_schema=False)

Name = Annotated[str, Field(min_length=1, max_length=256)]


class Sample(Loose):
    """The fields of a form; `fps` is how the video was encoded, and is in the file."""

    group_id: Name
    request_id: Name
    sample_id: Name
    expected_group_size: Annotated[int, Field(ge=1, le=MOST_PICTURES)]
    original_prompt: Prompt
    reward_tag: str = ""
    fps: int = 16


@router.get("/healthz")
async def healthz(request: Request) -> Response:
    """Return 200 if the metric of the settings is ready."""
    request.state.error_format = failed
    service, dialects = service_of(request), dialects_of(request)
    if missing := service.missing(service.metrics[dialects.metric(None)]):
        raise NotReady("; ".join(missing))
    return json_response({"status": "ok"})


@router.post("/v1/rewards:score")
async def score(request: Request) -> Response:
    """Return the score of a video when its group is complete, by the metric `reward_tag` or the usual one."""
    request.state.error_format = failed
    timeout_s = service_of(request).settings.dialects.timeouts_s.promptrl
    if given_ms := header_timeout(request):
        timeout_s = given_ms / 1000
    clock = asyncio.get_running_loop().time
    end = clock() + timeout_s
    sample, video = await received(request)
    dialects = dialects_of(request)
    metric = dialects.metric(sample.reward_tag if sample.reward_tag in dialects.metrics else None)
    digest = hashlib.sha256(f"{metric}\0{sample.original_prompt}\0".encode() + video).digest()
    with dialects.groups.joined(
        sample.request_id, sample.group_id, sample.expected_group_size, sample.sample_id, digest
    ) as group:
        if sample.sample_id not in group.outcomes:
            group.add(sample.sample_id, await outcome(request, sample, video, metric, timeout_s))
        del video  # it is not kept while others of the group are scored
        waiting = group.score(sample.sample_id, max(0, end - clock()))
        value = (await while_connected(request.receive, waiting)).value
    names = {"request_id": sample.request_id, "sample_id": sample.sample_id}
    return json_response({**names, "score": value, "details": {metric: value}})


async def received(request: Request) -> tuple[Sample, bytes]:
    """Read the form.  Raises `UnsupportedMediaType`, `Malformed`, `Invalid`, `CallerGone`."""
    content_type = request.headers.get("content-type", "")
    if not content_type.lower().startswith("multipart/form-data"):
        raise UnsupportedMediaType("send multipart/form-data")
    fields, video = await read_form(content_type, body.chunks(request), Sample.model_fields, "video")
    if not video:
        raise Invalid("video: the form has no such file, or it is empty")
    try:
        return Sample.model_validate_strings(fields), video
    except ValidationError as exc:
        raise invalid(exc, fields, Sample) from exc


async def outcome(request: Request, sample: Sample, video: bytes, metric: str, timeout_s: float) -> Outcome:
    """Return the score, or the error that is its group's.  Raises `CallerGone`."""
    wanted = Wanted(sample.original_prompt, Encoded(video), (metric,))
    try:
        [found] = await dialects_of(request).scored(request, [wanted], timeout_s)
        return found[metric]
    except ScoregateError as exc:
        return exc


def failed(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error; the client shows its text, and sends the group again."""
    status, headers = answer_to(error)
    content = {"detail": error.detail, "code": error.code}
    return json_response(content, 400 if status == Invalid.status else status, headers)
