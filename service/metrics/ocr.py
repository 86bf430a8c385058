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
        text: that the image should show; what the prompt quotes by default.
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
    What an `ocr` is made of.

    Attributes:
        wanted: the text that the image should show.
        read: all that was read in it.
        distance: between both, without spaces and in lower case; 0 where the wanted text is contained.
        lines: that were read, in their order.
    """

    wanted: str
    read: str
    distance: int
    lines: list[OcrLine]


async def ocr(item: Item, models: Models, options: OcrOptions) -> Score:
    """
    1 - min(distance, n) / n, n being the length of the text that the image should show.

    The rule of Flow-GRPO's OCR reward, which DiffusionNFT and others have taken over.  Their code differs in
    this: it takes the first text in straight quotes only, and what comes behind a quote that is left open.
    It removes spaces and no other white space.  Where reading fails the reward is 0, and not an error.

    Raises `NoText` where neither the prompt nor the options say what to look for.
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
    """The texts in double quotes, in their order.  Raises `NoText` where there is none."""
    found: Sequence[str] = ["".join(match.groups("")).strip() for match in QUOTED.finditer(prompt)]
    if text := " ".join(filter(None, found)):
        return text
    raise NoText("the prompt has no text in double quotes, and options.ocr.text is not set")


def plain(text: str) -> str:
    """Without white space and case."""
    return "".join(text.split()).lower()


def text_distance(wanted: str, read: str) -> int:
    """0 where *wanted* is contained in *read*, else their edit distance."""
    return 0 if wanted in read else Levenshtein.distance(wanted, read)


def text_score(distance: int, length: int) -> float:
    """1 for the wanted text, 0 where nothing of it could be read."""
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
