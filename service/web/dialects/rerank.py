"""
Rerankers' endpoints: pictures in the order of their scores, and scores of pairs.

```json
{
  "model": "vqascore",
  "query": "a red circle left of a blue square",
  "documents": ["<base64>", {"image": "data:image/png;base64,…"}],
  "top_n": 2
}
```

`query` is the prompt, and `documents` are the pictures: base64, a `data:` URI, an allowed URL, `{"image":
…}`, or `{"content": [{"type": "image_url", "image_url": {"url": …}}]}`. `model` is the metric, optional; `GET
/v1/models` lists them.

* `POST /v1/rerank` is for Jina, Cohere's first client (`cohere.Client`), Infinity, and litellm's `cohere/`,
  `jina_ai/` and `infinity/` (with `return_documents=False`).
* `POST /v2/rerank` is for `cohere.ClientV2`, and what uses it: `langchain-cohere`, llama-index.
* `POST /rerank` is for vLLM, litellm's `hosted_vllm/`, text-embeddings-inference (TEI) and litellm's
  `huggingface/`.

`results` are best first, each with `index` and `relevance_score`. Pictures without a score are under
`errors`, with their index; in TEI's format (`{"query", "texts"}`), such a picture fails the request.

`POST /v1/score`, and on the dialects' own port `POST /score`, has two sides as in vLLM: `text_1` with
`text_2`, `data_1` with `data_2`, or `queries` with `documents` or `items`. One side has texts, the other
pictures; both have the same length, or one has a single entry. `data` keeps the order. A pair without a score
has `"score": null` and an `error`.

`raw_scores` is rejected; set `dialects.options` instead. In all dialects `usage` is 0.
"""

import time
from collections.abc import Sequence
from typing import Annotated, Any, Self

import orjson
from fastapi import APIRouter, Request, Response
from pydantic import Field, model_validator

from service.core.errors import Invalid, ScoregateError
from service.core.fields import WHOLE
from service.metrics.common.contract import Score
from service.scoring.report import most_telling
from service.web.dialects.registry import Dialect
from service.web.dialects.scoring import Outcomes, Wanted, raise_most_telling
from service.web.dialects.wire import Loose, dialects_of, image_source, is_image, read_body, side, text
from service.web.endpoints import json_response, service_of
from service.web.problems import entry, errors_in, headers_of

router = APIRouter(include_in_schema=False)
on_own_port = APIRouter(include_in_schema=False)  # the public API on the main port has the same path
dialect = Dialect("rerank", router, on_own_port, clients="clients of Jina, Cohere, vLLM, Infinity and TEI")

NO_TOKENS = {"prompt_tokens": 0, "total_tokens": 0}  # typed clients need it; no tokens are counted


async def scored(request: Request, wanted: Sequence[Wanted]) -> Sequence[Outcomes]:
    """Return the outcomes.  Raises the most important error if nothing has a score."""
    timeout_s = service_of(request).settings.dialects.timeouts_s.rerank
    outcomes = await dialects_of(request).scored(request, wanted, timeout_s)
    errors = [error for found in outcomes for error in found.values() if isinstance(error, ScoregateError)]
    if len(errors) == len(wanted):
        raise most_telling(errors)
    return outcomes


def envelope(request: Request, metric: str) -> dict[str, Any]:
    """Build the fields of every response of Jina, Cohere and vLLM."""
    return {
        "id": request.state.request_id,
        "created": int(time.time()),
        "model": metric,
        "usage": NO_TOKENS,
    }


def failed(error: ScoregateError, request_id: str) -> Response:
    """Build the response to an error, with its text where clients of OpenAI, Cohere and Jina read it."""
    message = {"message": error.detail, "type": error.code, "param": None, "code": error.status}
    content = {"error": message, "message": error.detail, "detail": error.detail, "code": error.code}
    return json_response(content, error.status, headers_of(error))


@router.get("/v1/models")
@errors_in(failed)
async def models(request: Request) -> Response:
    """List the served metrics as OpenAI and vLLM list models, that of the settings first."""
    about = {"object": "model", "created": int(time.time()), "owned_by": "scoregate"}
    data = [{"id": name, **about} for name in dialects_of(request).metrics]
    return json_response({"object": "list", "data": data})


class RerankRequest(Loose):
    """
    A query with either documents or texts.

    Attributes:
        model: a metric; by default that of the settings.
        query: the prompt.
        documents: the pictures.
        texts: the pictures, from clients of TEI.
        top_n: most results; by default all.
        return_documents: whether results have their `document`.
        return_text: whether results of `texts` have their `text`.
        raw_scores: rejected if true.
    """

    model: str | None = None
    query: Any
    documents: Any = None
    texts: Annotated[list[str], Field(fail_fast=True)] | None = None
    top_n: Annotated[int, Field(ge=1), WHOLE] | None = None
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
            Wanted(prompt, image_source(entry, f"{field}/{number}"), (metric,))
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
    wire = await read_body(request, RerankRequest)
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


Side = list[Any]


class PairsRequest(Loose):
    """
    Two sides, under any of the names that they go by.

    Attributes:
        model: a metric; by default that of the settings.
        text_1, data_1, queries: the first side.
        text_2, data_2, documents, items: the second side.
    """

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
    wire = await read_body(request, PairsRequest)
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
    if firsts and all(map(is_image, firsts)):
        firsts, seconds = seconds, firsts
    texts = [text(entry, f"text {number}") for number, entry in enumerate(firsts)]
    images = [image_source(entry, f"picture {number}") for number, entry in enumerate(seconds)]
    if len(texts) == 1:
        texts *= len(images)
    elif len(images) == 1:
        images *= len(texts)
    if len(texts) != len(images):
        raise Invalid(f"{len(texts)} texts and {len(images)} pictures: give one of either, or as many")
    return [Wanted(prompt, source, (metric,)) for prompt, source in zip(texts, images, strict=True)]


def score_or_error(outcome: Score | ScoregateError) -> dict[str, Any]:
    """Return the fields of an entry.  A missing score is null: entries keep their places."""
    if isinstance(outcome, Score):
        return {"score": outcome.value}
    return {"score": None, "error": entry(outcome)}
