"""
Pictures in the order of their scores: `POST /rerank`, `/v1/rerank` and `/v2/rerank`.

The query is the prompt.  Clients of Jina, Cohere, vLLM and Infinity send `documents`.  Those of
text-embeddings-inference (TEI) send `texts`, and read a bare list.
"""

from typing import Annotated, Any, Self

import orjson
from fastapi import APIRouter, Request, Response
from pydantic import Field, model_validator

from service.core.errors import Invalid, ScoregateError
from service.metrics.common.contract import Score
from service.web.dialects.entries import picture, side, text
from service.web.dialects.rerankers import envelope, failed, scored
from service.web.dialects.scoring import Wanted, raise_most_telling
from service.web.dialects.wire import Loose, dialects_of, read
from service.web.problems import entry, errors_in
from service.web.routing import json_response, service_of

router = APIRouter(include_in_schema=False)


class RerankRequest(Loose):
    """A query with either documents or texts."""

    model: str | None = None
    query: Any
    documents: Any = None
    texts: Annotated[list[str], Field(fail_fast=True)] | None = None
    top_n: Annotated[int, Field(ge=1)] | None = None
    return_documents: bool | None = None
    return_text: bool = False
    raw_scores: bool = False

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if (self.documents is None) == (self.texts is None):
            raise ValueError("give either documents or texts")
        if self.return_documents:
            check_returnable(self.entries())
        return self

    def entries(self) -> list[Any]:
        """Return the documents or the texts."""
        return side(self.documents) if self.texts is None else self.texts

    def wanted(self, metric: str) -> list[Wanted]:
        """Return each picture with the prompt.  Raises `Invalid`."""
        if self.raw_scores:
            raise Invalid("raw_scores: set the options of the metric in [dialects] instead")
        prompt, field = text(self.query, "query"), "documents" if self.texts is None else "texts"
        return [
            Wanted(prompt, picture(entry, f"{field}/{number}"), (metric,))
            for number, entry in enumerate(self.entries())
        ]


def check_returnable(documents: list[Any]) -> None:
    """Check that documents can be written as JSON, unlike an integer of 70 bits.  Raises `ValueError`."""
    for number, document in enumerate(documents):
        try:
            orjson.dumps(document)
        except TypeError as exc:
            raise ValueError(f"documents/{number} cannot be returned: {exc}") from exc


@router.post("/rerank")
@router.post("/v1/rerank")
@router.post("/v2/rerank")
@errors_in(failed)
async def rerank(request: Request) -> Response:
    """Rank pictures, best first; documents without a score are listed under `errors`."""
    dialects = dialects_of(request)
    wire = await read(request, RerankRequest)
    metric = dialects.metric(wire.model)
    dialects.check_number(len(wire.entries()))
    outcomes = await scored(request, wire.wanted(metric))
    if wire.texts is not None:  # their response has no field for errors
        raise_most_telling((f"texts/{number}", found) for number, found in enumerate(outcomes))
    found = dict(enumerate(each[metric] for each in outcomes))
    values = {number: score.value for number, score in found.items() if isinstance(score, Score)}
    sign = 1 if service_of(request).metrics[metric].lower_is_better else -1
    best = dict(sorted(values.items(), key=lambda pair: sign * pair[1])[: wire.top_n])
    if wire.texts is not None:
        return json_response(ranks(best, wire.texts if wire.return_text else None))
    errors = [{"index": n, **entry(error)} for n, error in found.items() if isinstance(error, ScoregateError)]
    content = {"results": results(best, wire.entries() if wire.return_documents else None)}
    return json_response({**envelope(request, metric), **content, **({"errors": errors} if errors else {})})


def results(best: dict[int, float], documents: list[Any] | None) -> list[dict[str, Any]]:
    """Build the entries of a response to documents, with the *documents* if requested."""
    return [
        {
            "index": number,
            "relevance_score": value,
            **({"document": as_dict(documents[number])} if documents else {}),
        }
        for number, value in best.items()
    ]


def as_dict(document: str | dict[str, Any]) -> dict[str, Any]:
    """Return a document as typed clients read it: they need a text, which is all of a str."""
    return {"text": document} if isinstance(document, str) else {"text": "", **document}


def ranks(best: dict[int, float], texts: list[str] | None) -> list[dict[str, Any]]:
    """Build the entries of a response to texts, with the *texts* if requested."""
    return [
        {"index": number, "score": value, **({"text": texts[number]} if texts else {})}
        for number, value in best.items()
    ]
