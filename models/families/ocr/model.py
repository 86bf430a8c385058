"""
PP-OCR through the package `rapidocr`: lines of text are detected in an image and recognised.

Two networks of PP-OCRv6 (Apache-2.0), inside the package's wheel, run in onnxruntime on the CPU.  As in the
OCR rewards of trainers, the network for lines that are upside down is not used.
"""

import os
from collections.abc import Sequence
from typing import Any

import cv2
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
from rapidocr import RapidOCR

from models.core.calls import ReadCall
from models.core.contract import ModelInfo, Prepared
from models.core.outcomes import Line, Reading
from models.families.ocr import FAMILY, RapidOcrSettings
from models.families.ocr.order import in_reading_order
from models.families.ocr.package import NAME, Package, installed
from models.families.ocr.page import Page, page_of
from models.images.image import Image

LEAST_CONFIDENCE = 0.5  # of a line in the result; PaddleOCR drops the others, too


class RapidOcr:
    """
    The models of the package.

    Args:
        threads: per image, at most one for each core.
        id, revision: label of the scores; by default the weights' name and the package's version.

    Raises:
        CheckpointError: the package is not installed, or lacks a file of weights.
    """

    def __init__(self, *, threads: int = 1, id: str = "", revision: str = "") -> None:
        package = installed()
        cv2.setNumThreads(1)  # onnxruntime has its own threads
        self._engine = RapidOCR(params=parameters(package, threads))
        self.info = ModelInfo(
            role=FAMILY.role,
            family=FAMILY.name,
            id=id or NAME,
            revision=revision or package.version,
            dtype="float32",
            device="cpu",
        )

    def prepare(self, call: ReadCall) -> Prepared:
        """Make a page of the picture; the cost is its number of squares."""
        page = page_of(call.image.rgb)
        return Prepared(page.cost, page)

    def score(self, batch: Sequence[Prepared]) -> list[Reading]:
        """Read one picture after the other."""
        return [self._read(prepared.data) for prepared in batch]

    def _read(self, page: Page) -> Reading:
        found = self._engine(page.pixels)
        if found.txts is None:
            return Reading(())
        lines = (
            Line(text, page.in_picture(corners), float(confidence))
            for text, corners, confidence in zip(found.txts, found.boxes, found.scores, strict=True)
        )
        return Reading(in_reading_order(lines))

    def example(self) -> ReadCall:
        """Return a sign, so that both networks are warmed up."""
        picture = PIL.Image.new("RGB", (512, 512), "white")
        font = PIL.ImageFont.load_default(64)
        PIL.ImageDraw.Draw(picture).text((120, 220), "Example", fill="black", font=font)
        return ReadCall(Image.of(picture, "example"))


def parameters(package: Package, threads: int) -> dict[str, Any]:
    """
    Return parameters with local files, so that none is downloaded; pages are made here, and its log is off.
    """
    return {
        "Global.log_level": "critical",
        "Global.text_score": LEAST_CONFIDENCE,
        "Global.use_cls": False,
        "Global.use_preprocess_img": False,
        "Global.use_vertical_padding": False,
        "EngineConfig.onnxruntime.intra_op_num_threads": min(threads, os.cpu_count() or 1),
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        "Det.model_path": str(package.detector),
        "Rec.model_path": str(package.recogniser),
    }


def load(settings: RapidOcrSettings) -> RapidOcr:
    """Load the OCR model of a table.  Raises `CheckpointError`."""
    return RapidOcr(threads=settings.threads, id=settings.id, revision=settings.revision)
