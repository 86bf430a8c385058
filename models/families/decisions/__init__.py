"""VQA models behind a decision endpoint, which answers many questions about a picture in one request."""

from typing import Literal

from pydantic import Field

from models.core.contract import QUESTION
from models.core.family import Family
from models.core.settings import QuestionTemplate, RemoteSettings

Body = Literal["openai", "sglang", "systemone"]


class DecisionsSettings(RemoteSettings):
    """Settings of a decision endpoint."""

    body: Body = Field("openai", description="Whose requests the server reads.")
    max_questions: int = Field(
        64, ge=1, le=400, description="Most questions of a request; more about a picture take several."
    )
    question: QuestionTemplate = QUESTION


FAMILY = Family(
    "decisions",
    role="vqa",
    settings=DecisionsSettings,
    loader="models.families.decisions.model:from_settings",
    planner="models.families.openai:plan",
)
