"""`POST /questions` and `GET /questions/{id}`."""

from typing import cast

from fastapi import APIRouter, Request, Response

from service.core.concurrency.tasks import while_connected
from service.core.errors import ScoregateError
from service.questions.sets import QuestionSet
from service.scoring.report import most_telling
from service.web.endpoints import context_of, json_response, requests_of, service_of
from service.web.openapi import TIMEOUT, TRACE, documented
from service.web.problems import entry
from service.web.server.body import read_body
from service.web.wire.requests import QuestionsRequest, options_of
from service.web.wire.responses import QuestionEntry, QuestionsAnswer, SetEntry

router = APIRouter()


@router.post("/questions", **documented(QuestionsAnswer, QuestionsRequest, parameters=[TIMEOUT, TRACE]))
async def questions(request: Request) -> Response:
    """Write or load the question sets of prompts."""
    service = service_of(request)
    wanted, _ = await read_body(request, requests_of(request).questions, service.settings.server)
    context = context_of(service, request, wanted.timeout_ms, wanted.priority)
    style, llm = service.engine.catalog.style(
        wanted.style, options_of(wanted.options, [*service.engine.metrics])
    )
    work = service.asker.question_sets(wanted.prompts, style, llm, context)
    outcomes = await while_connected(request.receive, work)
    failed = [outcome for outcome in outcomes if isinstance(outcome, ScoregateError)]
    if len(failed) == len(outcomes):
        raise most_telling(failed)
    content: QuestionsAnswer = {
        "request_id": context.request_id,
        "sets": [
            {"prompt": prompt, "style": wanted.style, "error": entry(outcome)}
            if isinstance(outcome, ScoregateError)
            else {**set_entry(outcome[0]), "cached": outcome[1] == "hit"}
            for prompt, outcome in zip(wanted.prompts, outcomes, strict=True)
        ],
        "models": {llm.name: llm.info.label} if llm else {},
    }
    return json_response(content)


def set_entry(questions: QuestionSet) -> SetEntry:
    """Return a set in the form of the API."""
    content: SetEntry = {
        "prompt": questions.prompt,
        "style": questions.style,
        "id": questions.id,
        "questions": [cast(QuestionEntry, question.content()) for question in questions.questions],
        "provenance": {**questions.provenance},
    }
    if questions.unasked:
        content["unasked"] = [*questions.unasked]
    return content


ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


@router.get("/questions/{id}", **documented(SetEntry, also=[404], parameters=[ID]))
async def questions_by_id(request: Request) -> Response:
    """Return a stored question set."""
    id = request.path_params["id"]  # an argument would document FastAPI's own 422
    return json_response(set_entry(await service_of(request).questions.pinned(id)))
