"""Text in images as trainers reward it (the OCR reward of Flow-GRPO, Liu et al. 2025)."""

import re
from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein
from typing_extensions import TypedDict

from service.core.errors import NoText
from service.core.fields import Prompt
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import Models
from service.serving.demand import Demand

QUOTED = re.compile(r'"([^"]*)"|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»')


class OcrOptions(MetricOptions):
    """
    Options of `ocr`.

    Attributes:
        text: that the image should show; the quoted text of the prompt by default.
    """

    text: Prompt | None = None


class OcrLine(TypedDict):
    """
    One line of text.

    Attributes:
        box: its four corners (x, y) in pixels from the top left of the image.
        confidence: of the text, 0 to 1.
    """

    text: str
    box: list[tuple[float, float]]
    confidence: float


class OcrDetails(TypedDict):
    """
    Details of `ocr`.

    Attributes:
        wanted: the text that the image should show.
        read: all text in the image.
        distance: between both, without spaces and in lower case; 0 if the wanted text is contained.
        lines: of text in the image, in order.
    """

    wanted: str
    read: str
    distance: int
    lines: list[OcrLine]


async def ocr(item: Item, models: Models, options: OcrOptions) -> Score:
    """
    Return 1 - min(distance, n) / n; n is the length of the text that the image should show.

    This is the rule of Flow-GRPO's OCR reward, also used by DiffusionNFT and others.  Their code takes only
    the first text in straight quotes, and the text after a quote that is not closed.  It removes spaces and
    no other white space, and its reward is 0 if the OCR fails.

    Raises `NoText` if neither the prompt nor the options contain a text.
    """
    wanted = options.text or quoted(item.prompt)
    reading = await models.ocr.read(item.image)
    read = " ".join(line.text for line in reading.lines)
    distance = text_distance(plain(wanted), plain(read))
    details: OcrDetails = {
        "wanted": wanted,
        "read": read,
        "distance": distance,
        "lines": [
            {"text": line.text, "box": [*line.box], "confidence": line.confidence} for line in reading.lines
        ],
    }
    return Score(text_score(distance, len(plain(wanted))), details)


def quoted(prompt: str) -> str:
    """Return the texts in double quotes, joined in order.  Raises `NoText` if there is none."""
    found: Sequence[str] = ["".join(match.groups("")).strip() for match in QUOTED.finditer(prompt)]
    if text := " ".join(filter(None, found)):
        return text
    raise NoText("the prompt has no text in double quotes, and options.ocr.text is not set")


def plain(text: str) -> str:
    """Return *text* without white space, in lower case."""
    return "".join(text.split()).lower()


def text_distance(wanted: str, read: str) -> int:
    """Return 0 if *wanted* is contained in *read*, else their edit distance."""
    return 0 if wanted in read else Levenshtein.distance(wanted, read)


def text_score(distance: int, length: int) -> float:
    """Return 1 for the wanted text, 0 if nothing of it could be read."""
    return 1 - min(distance, length) / length


metric = Metric(
    "ocr",
    ocr,
    options=OcrOptions,
    details=OcrDetails,
    roles=("ocr",),
    demand_of=lambda prompt, options: {"ocr": Demand()},
    range=(0, 1),
    formula="1 - min(distance, n) / n, over the n characters of the text that is quoted in the prompt",
    paper="Liu et al. 2025, arXiv 2505.05470",
)
