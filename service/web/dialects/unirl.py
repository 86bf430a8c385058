"""
UniRL's reward service below `/unirl`, with an error for each missing score.

```yaml
base_url: http://127.0.0.1:8001/unirl
required_rewards: [vqascore, clipscore]
```

Rewards are metrics: `{"results": [{"vqascore": {"vqascore": 0.93}}]}`. The trainer does not start if a
required one is not ready in `/unirl/health`.

A reward without a score, also of a video or a metric that is not served, has an entry in `errors`, at the
same position: `{"vqascore": "image_undecodable: …"}`. The trainer then exits. The response is 503 only if
there is no score at all, for a temporary reason. `scorer_version` is null.

Each picture is scored by its own `required_rewards` alone, and only these are charged: a trainer that routes
by domain sends the rewards of a picture's domain.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from service.core.errors import Invalid, ScoregateError
from service.core.fields import WHOLE, Name, Prompt
from service.metrics.common.contract import Score
from service.scoring.report import MetricResult, most_telling
from service.web.dialects.registry import Dialect
from service.web.dialects.scoring import DialectScoring, Outcomes, Wanted, is_temporary
from service.web.dialects.wire import IMAGE_LIST, Loose, dialects_of, failed, read_body
from service.web.endpoints import charge_of, json_response, service_of
from service.web.problems import errors_in
from service.web.routes.health import health
from service.web.wire.requests import Base64Text

router = APIRouter(prefix="/unirl", include_in_schema=False)
dialect = Dialect("unirl", router, clients="UniRL")

MAX_TURNS = 64  # turns that are read; one is scored
PROMPT: TypeAdapter[str] = TypeAdapter(Prompt)
INT64 = 2**63
Identity = (  # fields that its trainer may expect back, as far as JSON can hold them
    Annotated[str, StringConstraints(max_length=256)]
    | Annotated[int, Field(ge=-INT64, lt=INT64), WHOLE]
    | None
)


class Turn(Loose):
    """
    One turn of a history: a text, and the picture generated from it.

    Attributes:
        text: the prompt.
        image_b64: the picture in base64.
        video_b64, video_path: rejected.
    """

    text: str = ""
    image_b64: Base64Text | None = None
    video_b64: Any = None
    video_path: Any = None


class Sample(Loose):
    """
    One picture with its rewards.

    Attributes:
        history: one turn; several are rejected.
        required_rewards: metrics.
        request_id, sample_id, group_id, source_rank, policy_version, idempotency_key: returned in
            `identities`.
    """

    history: Annotated[list[Turn], Field(min_length=1, max_length=MAX_TURNS, fail_fast=True)]
    required_rewards: Annotated[list[Name], Field(min_length=1, max_length=64, fail_fast=True)]
    request_id: Identity = None
    sample_id: Identity = None
    group_id: Identity = None
    source_rank: Identity = None
    policy_version: Identity = None
    idempotency_key: Identity = None

    def wanted(self, metrics: tuple[str, ...]) -> Wanted:
        """Return the picture with its prompt.  Raises `Invalid` for videos and edits."""
        turn = self.history[-1]
        if len(self.history) > 1:
            raise Invalid("a history of several turns (editing) is not scored here")
        if turn.video_b64 is not None or turn.video_path is not None or turn.image_b64 is None:
            raise Invalid("only pictures are scored here: send image_b64")
        try:
            return Wanted(PROMPT.validate_python(turn.text), turn.image_b64, metrics)
        except ValidationError as exc:
            raise Invalid(f"text: {exc.errors()[0]['msg'].removeprefix('Value error, ')}") from exc

    def identity(self) -> dict[str, Identity]:
        """Return the identity of the picture; the service has no scorer version."""
        return self.model_dump(include=NAMING) | {"scorer_version": None}


NAMING = {name for name, field in Sample.model_fields.items() if field.annotation == Identity}


class UniRLRequest(Loose):
    """
    Body of `POST /unirl/score`.

    Attributes:
        protocol_version: of the trainer.
        requests: one for each picture.
    """

    protocol_version: Literal["1"] | None = None
    requests: Annotated[list[Sample], IMAGE_LIST]


@router.get("/health")
async def roster(request: Request) -> Response:
    """Return the ready rewards as keys; the trainer does not start if one is missing."""
    return await health(request)


@router.get("/rewards")
async def rewards(request: Request) -> Response:
    """Return the names of all rewards."""
    return json_response({"rewards": list(service_of(request).engine.metrics)})


@router.post("/score")
@errors_in(failed)
async def score(request: Request) -> Response:
    """Return a score or an error for each reward of each picture."""
    samples = (await read_body(request, UniRLRequest)).requests
    outcomes = await of_all(request, samples)
    content = {
        "protocol_version": "1",
        "results": [
            {name: {name: score.value} for name, score in found.items() if isinstance(score, Score)}
            for found in outcomes
        ],
        "errors": [
            {
                name: f"{error.code}: {error.detail}"
                for name, error in found.items()
                if isinstance(error, ScoregateError)
            }
            for found in outcomes
        ],
    }
    if any("request_id" in sample.model_fields_set for sample in samples):
        content["identities"] = [sample.identity() for sample in samples]
    return json_response(content)


def check_size(samples: Sequence[Sample], dialects: DialectScoring) -> None:
    """Check the numbers of pictures and of rewards.  Raises `Invalid`."""
    dialects.check_shard(len(samples))
    rewards, most = (
        sum(len(sample.required_rewards) for sample in samples),
        len(samples) * len(dialects.known),
    )
    if rewards > most:
        raise Invalid(f"the request has {rewards} rewards of {len(samples)} pictures; at most {most}")


async def of_all(request: Request, samples: Sequence[Sample]) -> list[Outcomes]:
    """
    Return the outcome of each reward of each picture.

    Raises:
        Invalid: there are too many of them.
        QuotaExceeded, LargerThanQuota: there are too many for the key, served or not.
        ScoregateError: nothing has a score, and a retry may succeed: the trainer sends it again.
    """
    dialects = dialects_of(request)
    check_size(samples, dialects)
    outcomes = unserved(samples, dialects)
    charge_of(request)(sum(map(len, outcomes)))
    if wanted := wanted_of(samples, outcomes):
        timeout_s = service_of(request).settings.dialects.timeouts_s.unirl
        scored = await dialects.scored(request, [*wanted.values()], timeout_s, in_windows=True)
        for number, each in zip(wanted, scored, strict=True):
            outcomes[number].update(each)
    all_of_them = [outcome for found in outcomes for outcome in found.values()]
    errors = [outcome for outcome in all_of_them if isinstance(outcome, ScoregateError)]
    if len(errors) == len(all_of_them) and any(map(is_temporary, errors)):
        raise most_telling(errors)
    return [*outcomes]


def unserved(samples: Sequence[Sample], dialects: DialectScoring) -> list[dict[str, MetricResult]]:
    """Return the errors of rewards that are not served, for each picture."""
    unknown = dialects.unserved({name for sample in samples for name in sample.required_rewards})
    return [
        {name: unknown[name] for name in sample.required_rewards if name in unknown} for sample in samples
    ]


def wanted_of(samples: Sequence[Sample], outcomes: Sequence[dict[str, MetricResult]]) -> dict[int, Wanted]:
    """Return the inputs to score, by the picture's number; add errors of others to *outcomes*."""
    wanted: dict[int, Wanted] = {}
    for number, (sample, found) in enumerate(zip(samples, outcomes, strict=True)):
        served = tuple(dict.fromkeys(name for name in sample.required_rewards if name not in found))
        try:
            if served:
                wanted[number] = sample.wanted(served)
        except Invalid as error:
            found.update(dict.fromkeys(served, error))
    return wanted
