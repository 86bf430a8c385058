"""
Text in pictures, read by the PP-OCR models of the package `rapidocr`, in the role `ocr`.

```toml
[models.ocr]
family = "rapidocr"
```

The package `rapidocr` (`pip install '.[ocr]'`; `make demo` installs it) has the small PP-OCRv6 (31 MB,
Apache-2.0), for mainly Latin and Chinese letters. Pictures are scaled down to 1,280 pixels on the longer
side, too few for very small text. Lines below a confidence of 0.5 are dropped. Pictures are read one by
one, and other models on `cpu` wait meanwhile.
"""

from typing import Annotated, Literal

from pydantic import Field

from models.core.family import Family
from models.core.settings import NOT_IN_RECIPE, Batch, PlacedSettings


class RapidOcrSettings(PlacedSettings):
    """
    The models that the package brings; there is no checkpoint to name.

    A token of `batch` is a tile of 32x32 pixels.
    """

    device: Annotated[Literal["cpu"], NOT_IN_RECIPE] = Field(
        "cpu", description="Only `cpu`. Models on one device take turns."
    )
    threads: Annotated[int, NOT_IN_RECIPE] = Field(
        1, ge=1, description="Per picture; more help only if cores are idle."
    )
    batch: Annotated[Batch, NOT_IN_RECIPE] = Batch()


FAMILY = Family(
    "rapidocr",
    role="ocr",
    loads="the PP-OCR models of the package `rapidocr`",
    settings=RapidOcrSettings,
    loader="models.families.ocr.model:from_settings",
    planner="models.families.ocr.package:plan",
)
