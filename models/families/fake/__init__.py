"""The family `fake`: models without weights, for tests and load tests only."""

from typing import Annotated

from pydantic import Field

from models.core.family import Family
from models.core.settings import NOT_IN_RECIPE, Batch, DeviceSettings


class FakeSettings(DeviceSettings):
    """The duration of a fake's batches."""

    fixed_ms: Annotated[float, NOT_IN_RECIPE] = Field(0, ge=0, description="Time of each batch.")
    per_call_ms: Annotated[float, NOT_IN_RECIPE] = Field(0, ge=0, description="Time that each call adds.")
    timeout_s: Annotated[float, NOT_IN_RECIPE] = Field(
        60, gt=0, description="For one question set, with the wait for the model."
    )
    batch: Annotated[Batch, NOT_IN_RECIPE] = Batch()

    @property
    def is_demo(self) -> bool:
        """True: it has no weights."""
        return True


FAMILY = Family(
    "fake",
    role="",
    loads="nothing: meaningless answers, for tests",
    settings=FakeSettings,
    loader="models.families.fake.model:from_settings",
    planner="models.families.fake.model:plan",
)
