"""The part of videos that a request scores."""

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from service.core.fields import Strict

MAX_FPS = 1_000

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=MAX_FPS)]  # frames a second


class Clipped(Strict):
    """`start` and `end` are seconds in videos and animations, and `fps` frames taken from each second."""

    start: Seconds | None = None
    end: Annotated[Seconds, Field(gt=0)] | None = None
    fps: Rate | None = None

    @field_validator("end")
    @classmethod
    def _after_the_start(cls, end: float | None, info: ValidationInfo) -> float | None:
        if end is not None and end <= (info.data.get("start") or 0):
            raise ValueError("is not after start")
        return end
