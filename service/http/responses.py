"""Wire types of answers.  They document the API; answers are written by `routes` as plain dicts."""

from typing import Any, Literal

from pydantic import BaseModel


class ErrorEntry(BaseModel):
    """Why a score is missing."""

    code: str
    detail: str


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


class QuestionEntry(BaseModel):
    """One question of a set."""

    id: int
    kind: str
    text: str
    depends_on: list[int]
    expected: Literal["yes"]


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


class ModelsAnswer(BaseModel):
    """Answer of `GET /models`."""

    models: list[ModelEntry]
    metrics: dict[str, dict[str, Any]]
    limits: dict[str, Any]


class HealthAnswer(BaseModel):
    """Answer of `GET /health`, in the shape that trainers look for."""

    status: Literal["ok"]
    rewards: dict[str, list[str]]


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
