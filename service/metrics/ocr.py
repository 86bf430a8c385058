"""
Text in pictures as trainers reward it (the OCR reward of Flow-GRPO, Liu et al. 2025).

The text in the picture is compared with the text in double quotes in the prompt, both in lower case and
without whitespace, by the rule of Flow-GRPO and DiffusionNFT:

    score = 1 - min(d, n) / n

n is the length of the wanted text. d is 0 if the text of the picture contains it, otherwise the Levenshtein
distance.

Quotes are straight (`"…"`) or typographic (`“…”`, `„…“`, `«…»`), not single ones. The option `text`
replaces the quoted texts; without either the error is `no_text`.

Both sides are normalised: Unicode's NFC, ordinary width, and ASCII for typographic apostrophes, quotes,
dashes and ellipses. Of several quoted texts, those that the picture contains are removed from both sides, the
longest first; d is the distance of the others to the rest. With `explain`, `details` has both texts, the
distance, and each line with its box and confidence.

With other text in the picture d is at once n or more, and the score 0 for all but the whole text: there the
output `window` has a gradient.

The trainers' code takes only the first text in straight quotes, keeps typography, and scores 0 if OCR
fails.
"""

import re
from collections.abc import Sequence

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from typing_extensions import TypedDict

from service.core.errors import NoText
from service.core.fields import Prompt
from service.metrics.common.contract import Item, Metric, MetricOptions, Score
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.outputs import with_outputs
from service.metrics.common.texts import typed
from service.observability.notes import Code, Note
from service.serving.admission import Demand

QUOTED = re.compile(r'["＂]([^"＂]*)["＂]|“([^“”]*)”|„([^„“”]*)[“”]|«([^«»]*)»')
QUOTE = re.compile('["＂“”„«»]')
USED_TEXT_MARK = "\n"  # it replaces a text that was found, so that its surroundings do not become one text


class OcrOptions(MetricOptions):
    """
    Options of `ocr`.

    Attributes:
        text: that the picture should show; the quoted text of the prompt by default.
    """

    text: Prompt | None = None


class OcrLine(TypedDict):
    """
    One line of text.

    Attributes:
        box: its four corners (x, y) in pixels from the top left of the picture.
        confidence: of the text, 0 to 1.
    """

    text: str
    box: list[tuple[float, float]]
    confidence: float


class OcrOutputs(TypedDict):
    """
    Outputs of `ocr`, each a metric of its own.

    Attributes:
        exact: 1 if all wanted texts were read, and nothing else; otherwise 0.
        substring: the share of the wanted texts that were read.
        window: 1 - min(d, n) / n over the n characters of the wanted texts, where d is the distance to the
            part of the read text that is most like each.
    """

    exact: float
    substring: float
    window: float


class OcrDetails(OcrOutputs):
    """
    Details of `ocr`.

    Attributes:
        wanted: the text that the picture should show.
        read: all text in the picture.
        distance: between both, without spaces and typography and in lower case; 0 if each wanted text is
            contained.
        lines: of text in the picture, in order.
    """

    wanted: str
    read: str
    distance: int
    lines: list[OcrLine]


async def ocr(item: Item, models: ModelCalls, options: OcrOptions) -> Score:
    """
    Return 1 - min(distance, n) / n; n is the length of the text that the picture should show.

    This is the rule of Flow-GRPO's OCR reward, also used by DiffusionNFT and others.  Their code takes only
    the first text in straight quotes, and the text after a quote that is not closed.  It removes spaces and
    no other white space, and its reward is 0 if the OCR fails.

    Raises `NoText` if neither the prompt nor the options contain a text.
    """
    texts = [options.text] if options.text else quoted(item.prompt)
    warnings = () if options.text else unbalanced(item.prompt, texts)
    reading = await models.ocr.read(item.image)
    read = " ".join(line.text for line in reading.lines)
    wanted = [plain(text) for text in texts]
    distance = text_distance(wanted, read)
    details: OcrDetails = {
        "wanted": " ".join(texts),
        "read": read,
        "distance": distance,
        **outputs_of(wanted, read),
        "lines": [
            {"text": line.text, "box": [*line.box], "confidence": line.confidence} for line in reading.lines
        ],
    }
    return Score(text_score(distance, sum(map(len, wanted))), details, warnings=warnings)


def quoted(prompt: str) -> list[str]:
    """Return the texts in double quotes, in order.  Raises `NoText` if there is none."""
    found = ["".join(match.groups("")).strip() for match in QUOTED.finditer(prompt)]
    if texts := [*filter(None, found)]:
        return texts
    raise NoText("the prompt has no text in double quotes, and options.ocr.text is not set")


def unbalanced(prompt: str, texts: Sequence[str]) -> tuple[Note, ...]:
    """Return a warning if *prompt* has a quote without its other half, such as the sign of inches."""
    if not QUOTE.search(QUOTED.sub("", prompt)):
        return ()
    wanted = ", ".join(texts)
    text = f"the prompt has a double quote without its other half, so that the wanted text is: {wanted}"
    return (Note(Code.QUOTES_UNBALANCED, text),)


def plain(text: str) -> str:
    """Return *text* without white space and typography, in lower case."""
    return "".join(typed(text).split()).lower()


def text_distance(wanted: Sequence[str], read: str) -> int:
    """
    Return the edit distance between the *wanted* texts, which are `plain`, and the text that was *read*.

    Texts that it contains are taken out of it first, the longest first.  The others are joined in the order
    in which the words that are most like them were read.
    """
    missing, rest = not_contained(wanted, plain(read))
    words = [plain(word) for word in read.split()]
    if len(missing) > 1 and words:
        places = cdist(missing, words, scorer=Levenshtein.normalized_similarity).argmax(axis=1)
        missing = [missing[index] for index in places.argsort(kind="stable")]
    return Levenshtein.distance("".join(missing), rest.replace(USED_TEXT_MARK, "")) if missing else 0


def outputs_of(wanted: Sequence[str], read: str) -> OcrOutputs:
    """Return how much of the *wanted* texts, which are `plain`, a text that was *read* has."""
    missing, rest = not_contained(wanted, plain(read))
    return {
        "exact": float(not missing and not rest.replace(USED_TEXT_MARK, "")),
        "substring": 1 - len(missing) / len(wanted),
        "window": text_score(window_distance(missing, rest), sum(map(len, wanted))),
    }


def not_contained(wanted: Sequence[str], read: str) -> tuple[list[str], str]:
    """Return the texts that *read* does not contain, and *read* with a mark for each of the others."""
    missing = [*wanted]
    for text in sorted(wanted, key=len, reverse=True):
        if text in read:
            read = read.replace(text, USED_TEXT_MARK, 1)
            missing.remove(text)
    return missing, read


def window_distance(missing: Sequence[str], read: str) -> int:
    """
    Return the sum of the edit distances between the *missing* texts and the parts of *read* most like them.

    The longest text has the first choice.  A text is at most its length away: from no part at all.
    """
    total = 0
    for text in sorted(missing, key=len, reverse=True):
        ends = distances_to_parts(text, read)
        end = int(ends.argmin())
        starts = distances_to_parts(text[::-1], read[:end][::-1])  # no part that ends earlier is as like
        start = end - int(starts.argmin())
        read = read[:start] + USED_TEXT_MARK + read[end:]
        total += min(int(ends[end]), len(text))
    return total


def distances_to_parts(text: str, read: str) -> np.ndarray:
    """
    Return the edit distance between *text* and the most similar part of *read* that ends at each place.

    The algorithm of Sellers (1980), a row of the table for each character.  Shape: the characters of *read*
    and one more.
    """
    characters = np.frombuffer(read.encode("utf-32-le"), dtype="<u4")
    places = np.arange(len(characters) + 1)
    row = np.zeros_like(places)
    for number, character in enumerate(text, 1):
        best = row + 1
        best[0] = number
        best[1:] = np.minimum(best[1:], row[:-1] + (characters != ord(character)))
        row = np.minimum.accumulate(best - places) + places  # characters of *read* that the text lacks
    return row


def text_score(distance: int, length: int) -> float:
    """Return 1 for the wanted text, 0 if nothing of it could be read."""
    return 1 - min(distance, length) / length


OUTPUTS = {
    "exact": "1 if all wanted texts were read, and nothing else; otherwise 0",
    "substring": "the share of the wanted texts that were read",
    "window": "1 - min(d, n) / n, where d is the distance to the most similar parts of the read text",
}

metric = with_outputs(
    Metric(
        "ocr",
        ocr,
        options=OcrOptions,
        details=OcrDetails,
        roles=("ocr",),
        demand_of=lambda prompt, options: {"ocr": Demand()},
        range=(0, 1),
        formula="1 - min(distance, n) / n, over the n characters of the text that is quoted in the prompt",
        paper="Liu et al. 2025, arXiv 2505.05470",
    ),
    OUTPUTS,
    (0, 1),
)
