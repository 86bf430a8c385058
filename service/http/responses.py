"""Wire types of answers.  They document the API; answers are written by `routes` as plain dicts."""

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, create_model

from service.metrics.contract import Metric

D = TypeVar("D")


class ErrorEntry(BaseModel):
    """Why a score or a set is missing; where a wait was predicted, with it."""

    code: str
    detail: str
    retry_after_s: float | None = None


class Result(BaseModel):
    """Scores of one item."""

    index: int
    id: str | None = None
    scores: dict[str, float]
    errors: dict[str, ErrorEntry] | None = None
    cache: dict[str, Literal["hit", "miss", "coalesced"]] | None = None
    details: dict[str, Any] | None = None


class ScoreAnswer(BaseModel):
    """Answer of `POST /score`."""

    request_id: str
    results: list[Result]
    partial: bool
    warnings: list[str] | None = None
    models: dict[str, str]
    timings_ms: dict[str, float]


class Frames(BaseModel, Generic[D]):
    """Details of an item with several images: one entry for each."""

    frames: list[D]


def score_answer(metrics: Mapping[str, Metric]) -> type[ScoreAnswer]:
    """`ScoreAnswer` with details as these *metrics* declare them."""
    fields: dict[str, Any] = {name: (details_of(metric) | None, None) for name, metric in metrics.items()}
    details = create_model("Details", __doc__="Details by metric.", **fields)
    result = create_model("Result", __base__=Result, __doc__=Result.__doc__, details=(details | None, None))
    return create_model(
        "ScoreAnswer", __base__=ScoreAnswer, __doc__=ScoreAnswer.__doc__, results=(list[result], ...)
    )


def details_of(metric: Metric) -> Any:
    """The type of one metric's details, of a single image or of several."""
    details: Any = metric.details
    return details | Frames[details]


class QuestionEntry(BaseModel):
    """One question of a set."""

    id: int
    kind: str
    text: str
    depends_on: list[int]
    expected: str
    choices: list[str] | None = None
    phrase: str | None = None


class SetEntry(BaseModel):
    """One prompt's question set, or why it is missing."""

    prompt: str
    style: str
    id: str | None = None
    cached: bool | None = None
    questions: list[QuestionEntry] | None = None
    provenance: dict[str, str] | None = None
    error: ErrorEntry | None = None


class QuestionsAnswer(BaseModel):
    """Answer of `POST /questions`."""

    request_id: str
    sets: list[SetEntry]
    models: dict[str, str]


class ModelEntry(BaseModel):
    """One configured model."""

    name: str
    role: str
    family: str
    id: str
    revision: str
    dtype: str
    device: str
    ready: bool


class PartEntry(BaseModel):
    """One part of a composite, with the options that it does not leave as they are."""

    weight: float
    divide_by: float
    options: dict[str, Any]


class MetricEntry(BaseModel):
    """
    One metric: what it is under its default options, and how it stands now.

    Attributes:
        range: the least and the largest score; null where there is no bound.
        models: the configured names of those that it may ask.
        ready: whether all models that it needs serve.
        only: what it can score where a model that it may use is not configured.
        parts: of a composite.
    """

    range: tuple[float | None, float | None]
    direction: str
    formula: str
    paper: str
    roles: list[str]
    may_use: list[str]
    models: list[str]
    ready: bool
    only: str | None = None
    parts: dict[str, PartEntry] | None = None


class ModelsAnswer(BaseModel):
    """Answer of `GET /models`."""

    models: list[ModelEntry]
    metrics: dict[str, MetricEntry]
    limits: dict[str, Any]


class LiveAnswer(BaseModel):
    """Answer of `GET /livez`."""

    status: Literal["ok"]


class HealthAnswer(BaseModel):
    """Answer of `GET /health`, in the shape that trainers look for; and why other metrics aren't ready."""

    status: Literal["ok"]
    rewards: dict[str, list[str]]
    not_ready: dict[str, list[str]]


class ReadyAnswer(BaseModel):
    """Answer of `GET /readyz`: not ready with reasons, or ready with what to know."""

    ready: bool
    reasons: list[str]
    models: dict[str, str]
    caches: dict[str, str]


class FaultEntry(BaseModel):
    """One wrong place of a request."""

    pointer: str
    code: str
    detail: str


class Problem(BaseModel):
    """`application/problem+json` (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str
    errors: list[FaultEntry] | None = None
    retry_after_s: float | None = None
