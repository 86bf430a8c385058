"""Text in images, read by the PP-OCR models of the package `rapidocr`, in the role `ocr`."""

from typing import Annotated, Literal

from pydantic import Field

from models.core.family import Family
from models.core.settings import NOT_IN_RECIPE, Batch, PlacedSettings


class RapidOcrSettings(PlacedSettings):
    """The models that the package brings; there is no checkpoint to name."""

    device: Annotated[Literal["cpu"], NOT_IN_RECIPE] = Field(
        "cpu", description="Models on one device take turns."
    )
    threads: Annotated[int, NOT_IN_RECIPE] = Field(1, ge=1, description="Threads that read one image.")
    batch: Annotated[Batch, NOT_IN_RECIPE] = Batch()


FAMILY = Family(
    "rapidocr",
    role="ocr",
    settings=RapidOcrSettings,
    loader="models.families.ocr.model:from_settings",
    planner="models.families.ocr.package:plan",
)
