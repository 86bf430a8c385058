"""The settings of policies, by which items are decided."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from models.core.settings import Section
from service.core.settings.sections import MAX_TIMEOUT_MS

PolicyName = Annotated[str, StringConstraints(pattern="^[a-z][a-z0-9_]{0,63}$")]


class PolicySettings(Section):
    """The conditions of one policy; each is an expression over metrics."""

    accept: str = Field(description="Condition of items that are accepted.")
    review: str | None = Field(None, description="Condition of those of the others that people review.")
    without_score: Literal["accept", "review", "reject"] = Field(
        "reject", description="The decision where the known scores do not decide."
    )
    unreadable: Literal["review", "reject"] = Field(
        "reject", description="The decision about a picture that cannot be read."
    )
    rank_by: str | None = Field(None, description="Formula that orders the accepted items of a group.")
    timeout_ms: int = Field(
        1000, ge=1, le=MAX_TIMEOUT_MS, description="Time for a decision; a request may name a shorter one."
    )
    options: dict[str, dict[str, Any]] = Field({}, description="Options by metric, as `/score` takes them.")
