"""Endpoints: parse, call, return."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from service import body
from service.answers import (
    HealthAnswer,
    ModelsAnswer,
    QuestionsAnswer,
    ReadyAnswer,
    ScoreAnswer,
    SetEntry,
)
from service.context import Context
from service.documents import documented
from service.engine import Scored
from service.errors import DeadlineExceeded, Fault, LaneFull, NotReady, Overloaded, ScoregateError
from service.metrics.base import Score
from service.problems import MOST_FAULTS, entry
from service.questions.sets import QuestionSet
from service.schemas import QuestionsRequest, ScoreRequest
from service.service import Service
from service.serving.disconnect import while_connected
from service.telemetry import CONTENT_TYPE

router = APIRouter()


def service_of(request: Request) -> Service:
    """The service that this app runs."""
    service: Service = request.app.state.service
    return service


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON, written once and not validated again."""
    return Response(
        orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY),
        status,
        headers,
        "application/json",
    )


@router.post("/score", **documented(ScoreAnswer, ScoreRequest))
async def score(request: Request) -> Response:
    """Score images against prompts."""
    service = service_of(request)
    wanted, parts = await service.read(request, ScoreRequest)
    body.check_parts(wanted, parts)
    items = wanted.all_items()
    request.state.lane, request.state.items = wanted.priority, len(items)
    context = service.context(request, wanted.timeout_ms, wanted.priority)
    work = service.engine.score(items, wanted.metrics, wanted.options, parts, context)
    scored = await while_connected(request.receive, work)
    fail_as_a_whole(scored)
    notes = service.engine.warnings([item.prompt for item in items], wanted.metrics)
    notes += sorted({note for one in scored for note in score_warnings(one)})
    timings = context.timings_ms()
    content = {
        "request_id": context.request_id,
        "results": [result(one, wanted.explain) for one in scored],
        "partial": any(isinstance(o, ScoregateError) for s in scored for o in s.outcomes.values()),
        **({"warnings": notes} if notes else {}),
        "models": {
            name: handle.info.label for name, handle in service.engine.handles(wanted.metrics).items()
        },
        "timings_ms": timings,
    }
    stages = ", ".join(f"{stage};dur={ms}" for stage, ms in timings.items())
    return answer(content, headers={"Server-Timing": stages})


def result(scored: Scored, explain: bool) -> dict[str, Any]:
    """One item's entry of the answer."""
    scores = {name: o for name, o in scored.outcomes.items() if isinstance(o, Score)}
    errors = {name: o for name, o in scored.outcomes.items() if isinstance(o, ScoregateError)}
    cache = {name: o.cache for name, o in scores.items() if o.cache}
    return {
        "index": scored.index,
        **({"id": scored.id} if scored.id is not None else {}),
        "scores": {name: o.value for name, o in scores.items()},
        **({"errors": {name: entry(o) for name, o in errors.items()}} if errors else {}),
        **({"cache": cache} if cache else {}),
        **({"details": {name: o.details for name, o in scores.items()}} if explain else {}),
    }


def score_warnings(scored: Scored) -> list[str]:
    """What the scores of one item warn about, with the item's name."""
    return [
        f"item {scored.index}, {name}: {note}"
        for name, o in scored.outcomes.items()
        if isinstance(o, Score)
        for note in o.warnings
    ]


def fail_as_a_whole(scored: Sequence[Scored]) -> None:
    """
    Raise where nothing has a score for a reason that is the whole request's.

    The deadline, a full lane, a service that is closing; an image's fault never is.
    """
    outcomes = [outcome for one in scored for outcome in one.outcomes.values()]
    errors = [outcome for outcome in outcomes if isinstance(outcome, ScoregateError)]
    if len(errors) < len(outcomes):
        return
    faults = [
        Fault(f"/items/{one.index}", o.code, o.detail)
        for one in scored
        for o in one.outcomes.values()
        if isinstance(o, ScoregateError)
    ]
    for error in errors:
        if isinstance(error, DeadlineExceeded):
            raise DeadlineExceeded(stage=error.stage, faults=faults[:MOST_FAULTS])
    if all(isinstance(error, LaneFull | Overloaded | NotReady) for error in errors):
        raise errors[0]


@router.post("/questions", **documented(QuestionsAnswer, QuestionsRequest))
async def questions(request: Request) -> Response:
    """Write, or find, the question sets of prompts."""
    service = service_of(request)
    wanted, _ = await service.read(request, QuestionsRequest)
    context = service.context(request, wanted.timeout_ms, "interactive")
    llm = service.questions.llm
    work = question_sets(service, wanted, context)
    sets = await while_connected(request.receive, work)
    failed = [made for made in sets if isinstance(made, ScoregateError)]
    if len(failed) == len(sets):
        raise failed[0]
    content = {
        "request_id": context.request_id,
        "sets": [
            {"prompt": prompt, "style": wanted.style, "error": entry(made)}
            if isinstance(made, ScoregateError)
            else {**set_entry(made[0]), "cached": made[1] == "hit"}
            for prompt, made in zip(wanted.prompts, sets, strict=True)
        ],
        "models": {llm.name: llm.info.label},
    }
    return answer(content)


async def question_sets(service: Service, wanted: QuestionsRequest, context: Context) -> list[Any]:
    """An outcome per prompt, in order."""
    prompts = (question_set(service, prompt, wanted.style, context) for prompt in wanted.prompts)
    return await asyncio.gather(*prompts)


async def question_set(service: Service, prompt: str, style: str, context: Context) -> Any:
    """A prompt's set and how it was found, or the error that took its place."""
    try:
        async with asyncio.timeout_at(context.deadline):
            return await service.questions.of(prompt, style, context)
    except TimeoutError:
        return DeadlineExceeded()
    except ScoregateError as error:
        return error


def set_entry(questions: QuestionSet) -> dict[str, Any]:
    """A set as the API shows it."""
    return {
        "prompt": questions.prompt,
        "style": questions.style,
        "id": questions.id,
        "questions": list(questions.questions),
        "provenance": questions.provenance,
    }


@router.get("/questions/{id}", **documented(SetEntry))
async def questions_by_id(request: Request, id: str) -> Response:
    """A stored question set."""
    return answer(set_entry(await service_of(request).questions.pinned(id)))


@router.get("/models", **documented(ModelsAnswer))
async def models(request: Request) -> Response:
    """What is loaded, which metrics it serves, and the limits."""
    return answer(service_of(request).describe())


@router.get("/livez", **documented(None))
async def livez(request: Request) -> Response:
    """200 unless work waits and no batch has finished for `server.stall_s`."""
    if service_of(request).runtime.stalled():
        raise NotReady("no batch has finished for too long while work waits")
    return answer({"status": "ok"})


@router.get("/readyz", **documented(ReadyAnswer))
async def readyz(request: Request) -> Response:
    """200 when every required model serves; 503 with reasons otherwise."""
    ready = service_of(request).readiness()
    if ready["reasons"]:
        raise NotReady("; ".join(ready["reasons"]))
    return answer(ready)


@router.get("/health", **documented(HealthAnswer))
async def health(request: Request) -> Response:
    """The metrics on offer, in the shape that trainers look for."""
    roster = {name: ["ready"] for name in service_of(request).engine.metrics}
    return answer({"status": "ok", "rewards": roster})


metrics_router = APIRouter()


@metrics_router.get("/metrics", **documented(None))
async def metrics(request: Request) -> Response:
    """Prometheus instruments."""
    return Response(service_of(request).instruments.exposition(), media_type=CONTENT_TYPE)
