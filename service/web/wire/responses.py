"""Wire types of answers.  They document the API; answers are written by `routes` as plain dicts."""

from collections.abc import Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, create_model

from service.metrics.common.contract import Metric
from service.observability.notes import Code

D = TypeVar("D")


class ErrorEntry(BaseModel):
    """Why a score or a question set is missing; `retry_after_s` is there if a wait was predicted."""

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


class WarningCode(BaseModel):
    """
    The code of the warning at the same index of `warnings`.

    `item` and `metric` are there if it is about one score, and not about the whole request.
    """

    code: Annotated[str, Field(description=f"One of {', '.join(Code)}; there may be others later.")]
    item: int | None = None
    metric: str | None = None


class ScoreAnswer(BaseModel):
    """Response of `POST /score`; `warnings` and `warning_codes` have the same length and order."""

    request_id: str
    results: list[Result]
    partial: bool
    warnings: list[str] | None = None
    warning_codes: list[WarningCode] | None = None
    models: dict[str, str]
    timings_ms: dict[str, float]


class PictureError(ErrorEntry):
    """Why a picture has no place by score, and the metric that it failed under."""

    metric: str


class PlaceEntry(BaseModel):
    """
    One picture of a ranking; either `score` and `decided_by` are there, or `error`.

    Attributes:
        score: by the metric that decided.
        decided_by: that metric.
        scores: by each metric that the picture was shown to.
    """

    index: int
    accepted: bool
    score: float | None = None
    decided_by: str | None = None
    error: PictureError | None = None
    scores: dict[str, float]
    details: dict[str, Any] | None = None


class RankAnswer(BaseModel):
    """Response of `POST /rank`: the pictures, best first, and last those that failed."""

    request_id: str
    ranking: list[PlaceEntry]
    warnings: list[str] | None = None
    warning_codes: list[WarningCode] | None = None
    models: dict[str, str]
    timings_ms: dict[str, float]


class Frames(BaseModel, Generic[D]):
    """Details of an item with several images: one entry for each."""

    frames: list[D]
    frames_used: int
    frames_given: int


class Grid(BaseModel, Generic[D]):
    """
    Details of a grid: those of its score, and what is in it.

    Attributes:
        side: cells in each row and in each column.
    """

    grid: D
    side: int
    frames_used: int
    frames_given: int


def score_answer(metrics: Mapping[str, Metric]) -> type[ScoreAnswer]:
    """`ScoreAnswer` with details as these *metrics* declare them."""
    fields: dict[str, Any] = {name: (details_of(metric) | None, None) for name, metric in metrics.items()}
    details = create_model("Details", __doc__="Details by metric.", **fields)
    result = create_model("Result", __base__=Result, __doc__=Result.__doc__, details=(details | None, None))
    return create_model(
        "ScoreAnswer", __base__=ScoreAnswer, __doc__=ScoreAnswer.__doc__, results=(list[result], ...)
    )


def details_of(metric: Metric) -> Any:
    """Return the type of one metric's details, for a single image or several."""
    details: Any = metric.details
    return details | Frames[details] | Grid[details]


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
    """The question set of one prompt, or the error."""

    prompt: str
    style: str
    id: str | None = None
    cached: bool | None = None
    questions: list[QuestionEntry] | None = None
    provenance: dict[str, str] | None = None
    unasked: list[str] | None = None
    error: ErrorEntry | None = None


class QuestionsAnswer(BaseModel):
    """Response of `POST /questions`."""

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
    recipe: str
    ready: bool


class PartEntry(BaseModel):
    """One part of a composite, with the options that differ from their defaults."""

    weight: float
    divide_by: float
    options: dict[str, Any]


class MetricEntry(BaseModel):
    """
    One metric with its default options, and whether it is ready.

    Attributes:
        range: the smallest and the largest score; null where there is no bound.
        models: the configured names of the models that it may use.
        ready: whether all models that it needs are ready, and none that it may use failed.
        degraded: which model failed, and how, if one did; the metric is tried all the same.
        only: what it can score, if a model that it may use is not configured.
        parts: those of a composite, by metric.
    """

    range: tuple[float | None, float | None]
    direction: str
    formula: str
    paper: str
    roles: list[str]
    may_use: list[str]
    uses: list[str]
    models: list[str]
    ready: bool
    degraded: str | None = None
    only: str | None = None
    parts: dict[str, PartEntry] | None = None


class ModelsAnswer(BaseModel):
    """Response of `GET /models`."""

    models: list[ModelEntry]
    metrics: dict[str, MetricEntry]
    limits: dict[str, Any]


class LiveAnswer(BaseModel):
    """Response of `GET /livez`."""

    status: Literal["ok"]


class HealthAnswer(BaseModel):
    """
    Response of `GET /health`: the metrics that are ready, and why others are not.

    Attributes:
        degraded: metrics that are tried although a model of theirs failed, each with the reason.
        not_ready: metrics that cannot be scored now, each with the reasons.
    """

    status: Literal["ok"]
    rewards: dict[str, list[str]]
    degraded: dict[str, str]
    not_ready: dict[str, list[str]]


class ReadyAnswer(BaseModel):
    """Response of `GET /readyz`: whether the service is ready, and the state of each model and cache."""

    ready: bool
    reasons: list[str]
    models: dict[str, str]
    caches: dict[str, str]


class FaultEntry(BaseModel):
    """One error of a request, and its place as a JSON pointer."""

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
