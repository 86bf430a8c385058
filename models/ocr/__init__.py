"""Text in images, read by the PP-OCR models of the package `rapidocr`, in the role `ocr`."""

from typing import Literal

from pydantic import Field

from models.family import Family
from models.settings import Batch, PlacedSettings


class RapidOcrSettings(PlacedSettings):
    """The models that the package brings; there is no checkpoint to name."""

    device: Literal["cpu"] = Field("cpu", description="Models on one device take turns.")
    threads: int = Field(1, ge=1, description="Threads that read one image.")
    batch: Batch = Batch()


FAMILY = Family(
    "rapidocr",
    role="ocr",
    settings=RapidOcrSettings,
    loader="models.ocr.model:load",
    planner="models.ocr.plan:plan",
)
