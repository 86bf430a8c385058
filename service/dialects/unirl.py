"""UniRL's reward service below `/unirl`, with an error for each reward of each picture that has no score."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from service.dialects.failures import answer_to, is_temporary
from service.dialects.patience import Outcomes
from service.dialects.scoring import Wanted
from service.dialects.wire import Loose, dialects_of, read
from service.errors import Invalid, ScoregateError, UnknownMetric
from service.fields import Name, Prompt
from service.http.routes.health import health
from service.http.routing import json_response, service_of
from service.metrics.contract import Score
from service.report import most_telling
from service.sources import Base64

router = APIRouter(prefix="/unirl", include_in_schema=False)

PROMPT: TypeAdapter[str] = TypeAdapter(Prompt)
IDENTITY = (  # what its trainer may want to see again
    *("request_id", "sample_id", "group_id", "source_rank", "policy_version"),
    *("scorer_version", "idempotency_key"),
)


class Turn(Loose):
    """One turn of a history: a text, and the picture that was made of it."""

    text: str = ""
    image_b64: str | None = None
    video_b64: Any = None
    video_path: Any = None


class Ask(Loose):
    """One picture, and the rewards that are asked for."""

    model_config = ConfigDict(extra="allow")

    history: Annotated[list[Turn], Field(min_length=1, fail_fast=True)]
    required_rewards: Annotated[list[Name], Field(min_length=1, max_length=64, fail_fast=True)]

    def wanted(self, metrics: tuple[str, ...]) -> Wanted:
        """The picture with its prompt.  Raises `Invalid` where this is not what is scored here."""
        turn = self.history[-1]
        if len(self.history) > 1:
            raise Invalid("a history of several turns (editing) is not scored here")
        if turn.video_b64 is not None or turn.video_path is not None or turn.image_b64 is None:
            raise Invalid("only pictures are scored here: send image_b64")
        try:
            return Wanted(PROMPT.validate_python(turn.text), Base64(turn.image_b64), metrics)
        except ValidationError as exc:
            raise Invalid(f"text: {exc.errors()[0]['msg'].removeprefix('Value error, ')}") from exc

    def identity(self) -> dict[str, Any]:
        """What names it; the scorer's version is ours to say, and it has none here."""
        given = self.model_extra or {}
        return {name: given.get(name) for name in IDENTITY} | {"scorer_version": None}


class UniRLRequest(Loose):
    """Body of `POST /unirl/score`."""

    protocol_version: Literal["1"] | None = None
    requests: Annotated[list[Ask], Field(min_length=1, fail_fast=True)]


@router.get("/health")
async def roster(request: Request) -> Response:
    """The rewards that are ready, as keys; the trainer refuses to start where one is not among them."""
    return await health(request)


@router.get("/rewards")
async def rewards(request: Request) -> Response:
    """The names of all rewards."""
    return json_response({"rewards": list(service_of(request).engine.metrics)})


@router.post("/score")
async def score(request: Request) -> Response:
    """A score or an error for each reward of each picture."""
    try:
        asked = (await read(request, UniRLRequest)).requests
        outcomes = await of_all(request, asked)
    except ScoregateError as error:
        service_of(request).instruments.count_rejection(error)
        status, headers = answer_to(error)
        return json_response({"detail": error.detail, "code": error.code}, status, headers)
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
    if any("request_id" in (ask.model_extra or {}) for ask in asked):
        content["identities"] = [ask.identity() for ask in asked]
    return json_response(content)


async def of_all(request: Request, asked: list[Ask]) -> list[Outcomes]:
    """
    The outcome of each reward of each picture.

    Raises:
        ScoregateError: nothing has a score, for a reason that may pass: the trainer tries it again.
    """
    dialects = dialects_of(request)
    outcomes: list[dict[str, Score | ScoregateError]] = [
        {name: UnknownMetric(why) for name in ask.required_rewards if (why := dialects.absent(name))}
        for ask in asked
    ]
    wanted: dict[int, Wanted] = {}
    for number, (ask, found) in enumerate(zip(asked, outcomes, strict=True)):
        served = tuple(dict.fromkeys(name for name in ask.required_rewards if name not in found))
        try:
            if served:
                wanted[number] = ask.wanted(served)
        except Invalid as error:
            found.update(dict.fromkeys(served, error))
    if wanted:
        timeout_s = service_of(request).settings.dialects.timeouts_s.unirl
        scored = await dialects.scored(request, [*wanted.values()], timeout_s)
        for number, each in zip(wanted, scored, strict=True):
            outcomes[number].update(each)
    all_of_them = [outcome for found in outcomes for outcome in found.values()]
    errors = [outcome for outcome in all_of_them if isinstance(outcome, ScoregateError)]
    if len(errors) == len(all_of_them) and any(map(is_temporary, errors)):
        raise most_telling(errors)
    return [*outcomes]
