"""
Rerankers' endpoints for pictures: `POST /v1/rerank` (Jina, Cohere, vLLM) and `POST /v1/score` (vLLM).

The query is the prompt, and the documents are pictures.  `model` names the metric.
"""

import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from service.dialects.entries import is_picture, picture, side, text
from service.dialects.patience import Outcomes
from service.dialects.scoring import Wanted
from service.dialects.wire import Loose, dialects_of, read
from service.errors import Invalid, ScoregateError
from service.http.problems import entry, problem
from service.http.routing import json_response, service_of
from service.metrics.contract import Score
from service.report import most_telling

router = APIRouter(prefix="/v1", include_in_schema=False)

UNCOUNTED = {"prompt_tokens": 0, "total_tokens": 0}  # typed clients need it; no tokens are counted


class RerankRequest(Loose):
    """Body of `POST /v1/rerank`."""

    model: str | None = None
    query: Any
    documents: Annotated[list[Any], Field(min_length=1)]
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool = False
    raw_scores: bool = False


class PairsRequest(Loose):
    """Body of `POST /v1/score`: two sides, under any of the names that they go by."""

    model: str | None = None
    text_1: Any = None
    text_2: Any = None
    data_1: Any = None
    data_2: Any = None
    queries: Any = None
    documents: Any = None
    items: Any = None

    def sides(self) -> tuple[list[Any], list[Any]]:
        """The texts and the pictures, as many of both.  Raises `Invalid`."""
        firsts = [given for given in (self.text_1, self.data_1, self.queries) if given is not None]
        seconds = [
            given for given in (self.text_2, self.data_2, self.documents, self.items) if given is not None
        ]
        if len(firsts) != 1 or len(seconds) != 1:
            raise Invalid("give text_1 with text_2, data_1 with data_2, or queries with documents or items")
        texts, pictures = side(firsts[0]), side(seconds[0])
        if texts and all(map(is_picture, texts)):
            texts, pictures = pictures, texts
        if len(texts) == 1:
            texts *= len(pictures)
        elif len(pictures) == 1:
            pictures *= len(texts)
        if len(texts) != len(pictures):
            raise Invalid(f"{len(texts)} texts and {len(pictures)} pictures: give one of either, or as many")
        return texts, pictures


@router.post("/rerank")
async def rerank(request: Request) -> Response:
    """The pictures, best first; one without a score stands under `errors`."""
    try:
        wire = await read(request, RerankRequest)
        if wire.raw_scores:
            raise Invalid("raw_scores: set the options of the metric in [dialects] instead")
        prompt, metric = text(wire.query, "query"), dialects_of(request).metric(wire.model)
        wanted = [
            Wanted(prompt, picture(document, f"documents/{number}"), (metric,))
            for number, document in enumerate(wire.documents)
        ]
        outcomes = await scored(request, wanted)
    except ScoregateError as error:
        return refused(request, error)
    scores = {n: found[metric] for n, found in enumerate(outcomes)}
    values = {n: score.value for n, score in scores.items() if isinstance(score, Score)}
    lower = service_of(request).metrics[metric].lower_is_better
    best = sorted(values, key=lambda number: values[number] if lower else -values[number])[: wire.top_n]
    errors = [
        {"index": n, **entry(error)} for n, error in scores.items() if isinstance(error, ScoregateError)
    ]
    results = [
        {
            "index": number,
            "relevance_score": values[number],
            **({"document": wire.documents[number]} if wire.return_documents else {}),
        }
        for number in best
    ]
    content = {"results": results, **({"errors": errors} if errors else {})}
    return json_response({**envelope(request, metric), **content})


@router.post("/score")
async def score(request: Request) -> Response:
    """A score for each pair, in order; one that is missing is null, beside its error."""
    try:
        wire = await read(request, PairsRequest)
        metric = dialects_of(request).metric(wire.model)
        wanted = [
            Wanted(text(one, f"text {number}"), picture(other, f"picture {number}"), (metric,))
            for number, (one, other) in enumerate(zip(*wire.sides(), strict=True))
        ]
        outcomes = await scored(request, wanted)
    except ScoregateError as error:
        return refused(request, error)
    data = [
        {"index": number, "object": "score", **score_or_error(found[metric])}
        for number, found in enumerate(outcomes)
    ]
    return json_response({**envelope(request, metric), "object": "list", "data": data})


async def scored(request: Request, wanted: Sequence[Wanted]) -> Sequence[Outcomes]:
    """The outcomes.  Raises the error that says most where nothing has a score."""
    timeout_s = service_of(request).settings.dialects.timeouts_s.rerank
    outcomes = await dialects_of(request).scored(request, wanted, timeout_s)
    errors = [error for found in outcomes for error in found.values() if isinstance(error, ScoregateError)]
    if len(errors) == len(wanted):
        raise most_telling(errors)
    return outcomes


def score_or_error(outcome: Score | ScoregateError) -> dict[str, Any]:
    """What an entry says: positions must stay, and no number may stand for one that is missing."""
    if isinstance(outcome, Score):
        return {"score": outcome.value}
    return {"score": None, "error": entry(outcome)}


def envelope(request: Request, metric: str) -> dict[str, Any]:
    """What every answer has."""
    return {
        "id": request.state.request_id,
        "created": int(time.time()),
        "model": metric,
        "usage": UNCOUNTED,
    }


def refused(request: Request, error: ScoregateError) -> Response:
    """The problem, with the text where clients of OpenAI's, Cohere's and Jina's errors look for it."""
    service_of(request).instruments.count_rejection(error)
    told = problem(error, request.state.request_id)
    headers = {"Retry-After": told.headers["Retry-After"]} if "Retry-After" in told.headers else {}
    message = {"message": error.detail, "type": error.code, "param": None, "code": error.status}
    content = {"error": message, "message": error.detail, "detail": error.detail, "code": error.code}
    return json_response(content, error.status, headers)
