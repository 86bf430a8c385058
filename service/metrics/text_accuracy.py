"""Text in an image, judged word by word (skill-aligned evaluation, Eldesokey et al. 2026, section 4.2)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from typing_extensions import TypedDict

from models.images.image import Image
from service.metrics.common.model_calls import Models
from service.metrics.common.words import WORD


class TextRead(TypedDict):
    """A text that an image should show and what was read of it, as words; see `WordAccuracy`."""

    wanted: list[str]
    read: list[str]
    right: int
    wrong_gaps: int
    accuracy: float


class Tally(NamedTuple):
    """Words that are right, and gaps that hold words that nobody asked for; `best` is their difference."""

    best: int
    right: int

    def add(self, right: int, gaps: int) -> "Tally":
        """With so many more of both."""
        return Tally(self.best + right - gaps, self.right + right)


class WordAccuracy(NamedTuple):
    """
    How much of a text was read.

    Attributes:
        right: words that stand where they should.
        wrong_gaps: places before, between and behind the words where others stand, however many.
        words: of the text that is wanted.
    """

    right: int
    wrong_gaps: int
    words: int

    @property
    def accuracy(self) -> float:
        """max(0, right - wrong gaps) / words."""
        return max(0, self.right - self.wrong_gaps) / self.words


async def texts_read(image: Image, models: Models, texts: Mapping[int, list[str]]) -> dict[int, TextRead]:
    """How much of each of *texts* stands in the image; a word that only another of them has is no fault."""
    reading = await models.ocr.read(image)
    read = [word for line in reading.lines for word in words_of(line.text)]
    every = {word for words in texts.values() for word in words}
    found: dict[int, TextRead] = {}
    for id, wanted in texts.items():
        others = every - {*wanted}
        seen = [word for word in read if word not in others]
        tally = word_accuracy(wanted, seen)
        found[id] = {
            "wanted": wanted,
            "read": seen,
            "right": tally.right,
            "wrong_gaps": tally.wrong_gaps,
            "accuracy": tally.accuracy,
        }
    return found


def words_of(text: str) -> list[str]:
    """The words of a text without case and punctuation."""
    return [word.casefold() for word in WORD.findall(text)]


def word_accuracy(wanted: Sequence[str], read: Sequence[str]) -> WordAccuracy:
    """
    Compare the words that an image should show with those that were read, in their order.

    n words have n + 1 gaps.  A wanted word is right, is read as another, or is missing; what is read
    beside that falls into a gap.  Of all ways to lay the two side by side, the best one counts.

    Args:
        wanted: at least one word.
    """
    # ends[j]: the first words of *wanted* beside the first j of *read*, the gap behind them still clean;
    # `filled` lets the words up to j fall into that gap.
    ends = filled([Tally(0, 0), *[None] * len(read)])
    for word in wanted:
        beside = [end.add(int(word == other), 0) for end, other in zip(ends, read, strict=False)]
        ends = filled([ends[0], *map(max, ends[1:], beside)])
    best = ends[-1]
    return WordAccuracy(best.right, best.right - best.best, len(wanted))


def filled(clean: Sequence[Tally | None]) -> list[Tally]:
    """For each place the best of a clean gap and of one that holds the words since an earlier place."""
    ends: list[Tally] = []
    wrong: Tally | None = None  # the best end whose gap already holds a word
    for tally in clean:
        ends.append(max(found for found in (tally, wrong) if found is not None))
        opened = tally.add(0, 1) if tally is not None else None
        wrong = max((found for found in (wrong, opened) if found is not None), default=None)
    return ends
