"""Scores of pairs, as vLLM gives them: `POST /v1/score`, and `POST /score` on the dialects' own port."""

from typing import Any

from fastapi import APIRouter, Request, Response

from service.core.errors import Invalid, ScoregateError
from service.metrics.common.contract import Score
from service.web.dialects.entries import is_picture, picture, side, text
from service.web.dialects.rerankers import envelope, failed, scored
from service.web.dialects.scoring import Wanted
from service.web.dialects.wire import Loose, dialects_of, read
from service.web.endpoints import json_response
from service.web.problems import entry, errors_in

router = APIRouter(include_in_schema=False)
on_own_port = APIRouter(include_in_schema=False)  # its path is that of the public API on the main port

Side = list[Any]


class PairsRequest(Loose):
    """Two sides, under any of the names that they go by."""

    model: str | None = None
    text_1: Any = None
    text_2: Any = None
    data_1: Any = None
    data_2: Any = None
    queries: Any = None
    documents: Any = None
    items: Any = None

    def sides(self) -> tuple[Side, Side]:
        """Return both sides as they were sent.  Raises `Invalid`."""
        firsts = [given for given in (self.text_1, self.data_1, self.queries) if given is not None]
        seconds = [
            given for given in (self.text_2, self.data_2, self.documents, self.items) if given is not None
        ]
        if len(firsts) != 1 or len(seconds) != 1:
            raise Invalid("give text_1 with text_2, data_1 with data_2, or queries with documents or items")
        return side(firsts[0]), side(seconds[0])


@on_own_port.post("/score")
@router.post("/v1/score")
@errors_in(failed)
async def score(request: Request) -> Response:
    """Score pairs, in order; a missing score is null, and has an error."""
    dialects = dialects_of(request)
    wire = await read(request, PairsRequest)
    metric = dialects.metric(wire.model)
    firsts, seconds = wire.sides()
    dialects.check_number(max(len(firsts), len(seconds)))
    outcomes = await scored(request, pairs(firsts, seconds, metric))
    data = [
        {"index": number, "object": "score", **score_or_error(found[metric])}
        for number, found in enumerate(outcomes)
    ]
    return json_response({**envelope(request, metric), "object": "list", "data": data})


def pairs(firsts: Side, seconds: Side, metric: str) -> list[Wanted]:
    """Pair texts with pictures; a single entry is paired with all of the other side.  Raises `Invalid`."""
    if firsts and all(map(is_picture, firsts)):
        firsts, seconds = seconds, firsts
    texts = [text(entry, f"text {number}") for number, entry in enumerate(firsts)]
    pictures = [picture(entry, f"picture {number}") for number, entry in enumerate(seconds)]
    if len(texts) == 1:
        texts *= len(pictures)
    elif len(pictures) == 1:
        pictures *= len(texts)
    if len(texts) != len(pictures):
        raise Invalid(f"{len(texts)} texts and {len(pictures)} pictures: give one of either, or as many")
    return [Wanted(prompt, source, (metric,)) for prompt, source in zip(texts, pictures, strict=True)]


def score_or_error(outcome: Score | ScoregateError) -> dict[str, Any]:
    """Return the fields of an entry.  A missing score is null: entries keep their places."""
    if isinstance(outcome, Score):
        return {"score": outcome.value}
    return {"score": None, "error": entry(outcome)}
