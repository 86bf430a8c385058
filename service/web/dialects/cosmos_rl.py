"""
cosmos-rl's reward service: `POST /api/reward/enqueue`, then `/api/reward/pull` for each reward.

```sh
export REMOTE_REWARD_ENQUEUE_URL=http://127.0.0.1:8001/api/reward/enqueue
export REMOTE_REWARD_FETCH_URL=http://127.0.0.1:8001/api/reward/pull
export REMOTE_REWARD_TOKEN=   # on the main port: the key
```

The `name` of an entry in the trainer's `remote_reward.reward_fns` is a metric, and so is the name of its
scores: `{"scores": {"vqascore": [0.93]}, "type": "vqascore", "duration": "0.35"}`. Weights and clipping are
the trainer's; a reward whose weight is not above 0 is left out. After the line of JSON come

* `"media_type": "image"`: a NumPy file of uint8 with the shape (pictures, height, width, 3), as the trainer
  sends it.
* `"media_type": "video"`: one of (videos, 3, frames, height, width), of which 16 frames spread over each
  video are scored, or one MP4 file, as elsewhere. An MP4 is an extension of ours.

The trainer itself sends videos as latents (`"latent"`), which only its VAE decodes: they are rejected.

**A pull is 400 until the scores are there.** A reward that has none, for one picture of it, is 200 with
`"scores": null` and an `error`: so its trainer stops, and other clients raise. After any other status the
trainer sends the same again for most of an hour, and some clients take zeros. That holds for wrong content of
the enqueued request and for unknown ids, too.

Scores stay for 15 minutes, for the key that enqueued them. Above 16 MiB of a key's scores, its oldest are
dropped. A key may have 256 requests running, and their pictures count towards `server.requests_mb`, twice.
Enqueue and pull go to the same process: behind a load balancer, give each rank one address.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from service.core.concurrency.cpu_threads import on_thread
from service.core.errors import Invalid, Malformed, NotFound, ScoregateError
from service.core.fields import Name, few
from service.images.arrays import frames_of
from service.images.frames import VIDEO_FRAMES
from service.serving.context import Context
from service.serving.outbox import ResultParts
from service.web.dialects.registry import Dialect
from service.web.dialects.scoring import DialectScoring, Outcomes, Wanted, values_of
from service.web.dialects.wire import Loose, PromptList, dialects_of, failed, form_of
from service.web.endpoints import json_response, service_of
from service.web.keys import ANYONE
from service.web.problems import errors_in
from service.web.server.body import Raw, parse, parsed, whole

router = APIRouter(prefix="/api/reward", include_in_schema=False)
dialect = Dialect("cosmos_rl", router, clients="cosmos-rl")
EVERY_REWARD = ""  # the part that every reward has, if the request is wrong as a whole


class CosmosTask(Loose):
    """
    The line of JSON: rewards are metrics, and their weights are applied by the trainer.

    Attributes:
        prompts: of each picture or video.
        reward_fn: weights by metric; those that are not above 0 are left out.
        media_type: `image` or `video`: what follows the line; `latent` is rejected.
    """

    prompts: PromptList
    reward_fn: Annotated[dict[Name, float], Field(min_length=1, max_length=64), few(64)]
    media_type: str = "latent"

    def wanted(self, media: memoryview, metrics: tuple[str, ...]) -> list[Wanted]:
        """Return the pictures or videos with their prompts.  Raises `Invalid`."""
        found = frames_of(self.media_type.lower(), media, len(self.prompts), VIDEO_FRAMES)
        pairs = zip(self.prompts, found, strict=True)
        return [Wanted(prompt, first, metrics, more=more) for prompt, (first, *more) in pairs]


def task_of(body: Raw) -> tuple[CosmosTask | Invalid, memoryview]:
    """Return the task of a body, or what is wrong with it, and the bytes after it.  Raises `Malformed`."""
    if (end := body.find(b"\n")) < 0:
        raise Malformed("the body is not a line of JSON with the bytes of pictures after it")
    media = memoryview(body)[end + 1 :]
    try:
        return parse(bytes(body[:end]), CosmosTask), media
    except Invalid as error:
        return error, media


def result(reward: str, outcomes: Sequence[Outcomes], context: Context) -> dict[str, Any]:
    """Return the answer to a pull of *reward*; a rejection is counted here, since no response has it."""
    try:
        scores = {reward: values_of(outcomes, reward, "picture")}
        return {"scores": scores, "type": reward, "duration": f"{context.elapsed():.2f}"}
    except ScoregateError as error:
        context.instruments.count_rejection(error)
        return unscored(error)


def unscored(error: ScoregateError) -> dict[str, Any]:
    """Return the answer to a pull of a reward without scores."""
    return {"scores": None, "error": f"{error.code}: {error.detail}"}


async def results(
    dialects: DialectScoring, task: CosmosTask | Invalid, media: memoryview, context: Context
) -> ResultParts:
    """Score what was enqueued, and return the answer for each reward with a positive weight."""
    try:
        if isinstance(task, Invalid):
            raise task
        dialects.check_shard(len(task.prompts))
        names = [name for name, weight in task.reward_fn.items() if weight > 0]
        absent = dialects.unserved(names)
        served = tuple(name for name in names if name not in absent)
        wanted = await on_thread(task.wanted, media, served)
        scored = await dialects.in_windows(wanted, context) if served else [{}] * len(wanted)
    except ScoregateError as error:
        return {EVERY_REWARD: unscored(error)}
    return {name: result(name, [{**absent, **each} for each in scored], context) for name in names}


@router.post("/ping")
@errors_in(failed)
async def ping(request: Request) -> Response:
    """Return the text that its clients print."""
    await form_of(request)
    return json_response({"message": "Ping request received"})


@router.post("/enqueue")
@errors_in(failed)
async def enqueue(request: Request) -> Response:
    """Return the id of scores that are there later.  Errors of the content are those of its pulls."""
    service, dialects, body = service_of(request), dialects_of(request), await whole(request)
    task, media = await parsed(request, task_of, body)
    images = 0 if isinstance(task, Invalid) else len(task.prompts)
    context = dialects.context(request, images, service.settings.dialects.timeouts_s.cosmos_rl)
    work = partial(results, dialects, task, media, context)
    return json_response({"uuid": service.outbox.post(context.account.name, work, 2 * len(body))})


@router.post("/pull")
@errors_in(failed)
async def pull(request: Request) -> Response:
    """Return the scores of one reward, or 400 while they are not there."""
    form, caller = await form_of(request), getattr(request.state, "caller", ANYONE).name or None
    try:
        parts = service_of(request).outbox.get(caller, form.get("uuid", ""))
    except ScoregateError as error:
        return json_response(unscored(error))
    if parts is None:
        return json_response({"message": "the scores are not there yet"}, 400)
    none = unscored(NotFound("the request has no such reward with a positive weight"))
    return json_response(parts.get(form.get("type", ""), parts.get(EVERY_REWARD, none)))
