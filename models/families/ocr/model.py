"""
PP-OCR through the package `rapidocr`: lines of text are detected in an image and recognised.

Two networks of PP-OCRv6 (Apache-2.0), inside the package's wheel, run in onnxruntime on the CPU.  As in the
OCR rewards of trainers, the network for lines that are upside down is not used.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import cv2
import numpy as np
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
from rapidocr import RapidOCR

from models.core.calls import ReadCall
from models.core.contract import ModelInfo, Prepared
from models.core.outcomes import Line, Reading
from models.families.ocr import FAMILY, RapidOcrSettings
from models.families.ocr.package import WEIGHTS_NAME, Package, installed
from models.images.image import Image


def in_reading_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """
    Sort lines from top to bottom, and from left to right in each row.

    A line belongs to the row above it if its middle is not below the bottom of the row's first line.
    """
    rows: list[list[Line]] = []
    bottom = float("-inf")
    for line in sorted(lines, key=middle):
        if middle(line) > bottom:
            rows.append([])
            bottom = max(y for _, y in line.box)
        rows[-1].append(line)
    return tuple(line for row in rows for line in sorted(row, key=left))


def middle(line: Line) -> float:
    """Return the vertical distance of a line's middle from the top."""
    return sum(y for _, y in line.box) / len(line.box)


def left(line: Line) -> float:
    """Return the left end of a line."""
    return min(x for x, _ in line.box)


MAX_SIDE = 1280  # longest side of a page; smaller pictures are not scaled
MIN_SIDE = 32
MAX_ASPECT = 3  # longer side over shorter; black fills the rest
MIN_DETECTED_SIDE = 736  # what the detector enlarges the shorter side to
COST_SIDE = 32  # side of the squares that the cost counts


@dataclass(frozen=True, slots=True)
class Page:
    """
    The input of the detector.

    Attributes:
        pixels: uint8 (height, width, 3), in the order blue, green, red.
        place: left, top, right and bottom of the picture on the page.
        size: width and height of the picture itself.
    """

    pixels: np.ndarray
    place: tuple[int, int, int, int]
    size: tuple[int, int]

    @property
    def cost(self) -> int:
        """The number of 32x32 squares in the detector's input."""
        height, width = self.pixels.shape[:2]
        larger = max(1.0, MIN_DETECTED_SIDE / min(height, width))
        pieces: int = ceil(height * larger / COST_SIDE) * ceil(width * larger / COST_SIDE)
        return pieces

    def in_image(self, corners: np.ndarray) -> tuple[tuple[float, float], ...]:
        """Convert corners (4, 2) on the page to pixels of the picture, clipped."""
        place, size = np.array(self.place, float), np.array(self.size, float)
        scale = size / (place[2:] - place[:2])
        found = np.clip((corners - place[:2]) * scale, 0, size)
        return tuple((float(x), float(y)) for x, y in found)


def page_of(rgb: PIL.Image.Image) -> Page:
    """Scale *rgb* down to a page's size, and centre it on a page that is no strip."""
    scale = min(1.0, MAX_SIDE / max(rgb.size))
    width, height = (max(1, round(side * scale)) for side in rgb.size)
    image = rgb.resize((width, height), PIL.Image.Resampling.BICUBIC) if scale < 1 else rgb
    least = max(MIN_SIDE, ceil(max(width, height) / MAX_ASPECT))
    page = PIL.Image.new("RGB", (max(width, least), max(height, least)))
    left, top = (page.width - width) // 2, (page.height - height) // 2
    page.paste(image, (left, top))
    pixels = np.ascontiguousarray(np.asarray(page)[:, :, ::-1])
    return Page(pixels, (left, top, left + width, top + height), rgb.size)


MIN_CONFIDENCE = 0.5  # PaddleOCR drops lines with less, too


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
            id=id or WEIGHTS_NAME,
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
            Line(text, page.in_image(corners), float(confidence))
            for text, corners, confidence in zip(found.txts, found.boxes, found.scores, strict=True)
        )
        return Reading(in_reading_order(lines))

    def example(self) -> ReadCall:
        """Return a sign, so that both networks are warmed up."""
        image = PIL.Image.new("RGB", (512, 512), "white")
        font = PIL.ImageFont.load_default(64)
        PIL.ImageDraw.Draw(image).text((120, 220), "Example", fill="black", font=font)
        return ReadCall(Image.of(image, "example"))


def parameters(package: Package, threads: int) -> dict[str, Any]:
    """
    Return parameters with local files, so that none is downloaded; pages are made here, and its log is off.
    """
    return {
        "Global.log_level": "critical",
        "Global.text_score": MIN_CONFIDENCE,
        "Global.use_cls": False,
        "Global.use_preprocess_img": False,
        "Global.use_vertical_padding": False,
        "EngineConfig.onnxruntime.intra_op_num_threads": min(threads, os.cpu_count() or 1),
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        "Det.model_path": str(package.detector),
        "Rec.model_path": str(package.recogniser),
    }


def from_settings(settings: RapidOcrSettings) -> RapidOcr:
    """Load the OCR model of a table.  Raises `CheckpointError`."""
    return RapidOcr(threads=settings.threads, id=settings.id, revision=settings.revision)
