"""
Texts of prompts and images: words, typography, and scores for each word.

The words of a prompt with scores were announced by Gecko (Wiles et al. 2024, F.7); text in an image is judged
as in skill-aligned evaluation (Eldesokey et al. 2026, section 4.2).
"""

import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple
from unicodedata import east_asian_width, normalize

from typing_extensions import TypedDict

from models.images.image import Image
from service.metrics.common.model_calls import ModelCalls

WORD = re.compile(r"\w[\w\u0300-\u036f]*(?:['’-]\w[\w\u0300-\u036f]*)*")  # a word may have combining accents
TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        "…": "...",
    }
)


class Word(TypedDict):
    """A word of a prompt; score is the mean of the questions that cover it, null if none does."""

    word: str
    score: float | None


def words(prompt: str, scored: Sequence[tuple[str, float]]) -> list[Word]:
    """
    Return the words of *prompt* in order, each with the mean score of the questions that cover it.

    Args:
        scored: the words (a phrase, or the text) and the score of each question.
    """
    about = [({stem(word) for word in WORD.findall(text)}, score) for text, score in scored]
    found: list[Word] = []
    for word in WORD.findall(prompt):
        sought = stem(word)
        scores = [score for stems, score in about if sought in stems]
        found.append({"word": word, "score": fmean(scores) if scores else None})
    return found


def prefixed(prefix: str | None, text: str) -> str:
    """Return *text* after *prefix* and a space, if there is a prefix."""
    return f"{prefix.rstrip()} {text}" if prefix else text


def typed(text: str) -> str:
    """
    Return *text* as a plain keyboard writes it, composed (NFC).

    Full-width and half-width characters have their ordinary width; typographic apostrophes, quotes, dashes
    and the ellipsis are ASCII.
    """
    if text.isascii():
        return text.translate(TYPOGRAPHY)
    narrow = "".join(normalize("NFKC", each) if east_asian_width(each) in "FH" else each for each in text)
    return normalize("NFC", narrow).translate(TYPOGRAPHY)


def stem(word: str) -> str:
    """Return a word without its case and its plural, so that "circle" covers "Circles"."""
    lower = typed(word).casefold()
    if len(lower) > 4 and lower.endswith(("ses", "xes", "zes", "ches", "shes")):
        return lower[:-2]
    return lower[:-1] if len(lower) > 3 and lower.endswith("s") and not lower.endswith("ss") else lower


class TextRead(TypedDict):
    """A text that an image should show, and the words that were read or labelled as right."""

    wanted: list[str]
    read: list[str]
    right: int
    wrong_gaps: int
    accuracy: float


class Tally(NamedTuple):
    """The number of right words, and `best`: that less the number of gaps with extra words."""

    best: int
    right: int

    def add(self, right: int, gaps: int) -> "Tally":
        """Return a tally with so many more of both."""
        return Tally(self.best + right - gaps, self.right + right)


class WordAccuracy(NamedTuple):
    """
    The accuracy of a text in an image.

    Attributes:
        right: the number of words in their places.
        wrong_gaps: the number of gaps before, between and after the words that contain any others.
        words: the number of words of the wanted text.
    """

    right: int
    wrong_gaps: int
    words: int

    @property
    def accuracy(self) -> float:
        """max(0, right - wrong gaps) / words."""
        return max(0, self.right - self.wrong_gaps) / self.words


async def texts_read(image: Image, models: ModelCalls, texts: Mapping[int, list[str]]) -> dict[int, TextRead]:
    """Return the accuracy of each of *texts*; words that only another of them has are ignored."""
    reading = await models.ocr.read(image)
    read = [word for line in reading.lines for word in words_of(line.text)]
    every = {word for words in texts.values() for word in words}
    found: dict[int, TextRead] = {}
    for id, wanted in texts.items():
        others = every - {*wanted}
        seen = [word for word in read if word not in others]
        found[id] = text_read(wanted, seen, word_accuracy(wanted, seen))
    return found


async def texts_labelled(image: Image, models: ModelCalls, texts: Mapping[int, str]) -> dict[int, TextRead]:
    """
    Return the accuracy of each of *texts* by the VQA model, which labels each word and each gap.

    The released code's VLM gives all labels in one call; here each label is a call, in other words.
    """
    found: dict[int, TextRead] = {}
    for id, text in texts.items():
        words = text.split()
        labels = await models.vqa.ask(image, [*about_words(text, words), *about_gaps(text, words)], "Yes")
        yes = [label.logit > 0 for label in labels]
        right = [word for word, rendered in zip(words, yes, strict=False) if rendered]
        wrong_gaps = sum(yes[len(words) :])
        found[id] = text_read(words, right, WordAccuracy(len(right), wrong_gaps, len(words)))
    return found


def text_read(wanted: list[str], read: list[str], found: WordAccuracy) -> TextRead:
    """Return the details of a text."""
    return {
        "wanted": wanted,
        "read": read,
        "right": found.right,
        "wrong_gaps": found.wrong_gaps,
        "accuracy": found.accuracy,
    }


def about_words(text: str, words: Sequence[str]) -> list[str]:
    """Return a question for each word: whether the image shows it without an error."""
    return [
        f'The image should show the text "{text}". Is word {n} of it, "{word}", in the image and spelled'
        " correctly? Please answer yes or no."
        for n, word in enumerate(words, 1)
    ]


def about_gaps(text: str, words: Sequence[str]) -> list[str]:
    """Return a question for each gap: whether the image has other or repeated text in it."""
    places = [f'before "{words[0]}"', *map('between "{}" and "{}"'.format, words, words[1:])]
    return [
        f'The image should show the text "{text}". Is there other or repeated text {place}? Please answer yes'
        " or no."
        for place in (*places, f'after "{words[-1]}"')
    ]


def words_of(text: str) -> list[str]:
    """Return the words of a text without case, punctuation and typography."""
    return [word.casefold() for word in WORD.findall(typed(text))]


def word_accuracy(wanted: Sequence[str], read: Sequence[str]) -> WordAccuracy:
    """
    Compare the words that an image should show with those that were read, in order.

    n words have n + 1 gaps.  A wanted word is right, is read as another, or is missing; extra words fall into
    a gap.  The best alignment counts.

    Args:
        wanted: at least one word.
    """
    # ends[j]: the first words of *wanted* aligned with the first j of *read*, the gap after them still clean;
    # `filled` lets the words up to j fall into that gap.
    ends = filled([Tally(0, 0), *[None] * len(read)])
    for word in wanted:
        aligned = [end.add(int(word == other), 0) for end, other in zip(ends, read, strict=False)]
        ends = filled([ends[0], *map(max, ends[1:], aligned)])
    best = ends[-1]
    return WordAccuracy(best.right, best.right - best.best, len(wanted))


def filled(clean: Sequence[Tally | None]) -> list[Tally]:
    """Return for each place the best of a clean gap and of one with the words since an earlier place."""
    ends: list[Tally] = []
    wrong: Tally | None = None  # the best end whose gap already holds a word
    for tally in clean:
        ends.append(max(found for found in (tally, wrong) if found is not None))
        opened = tally.add(0, 1) if tally is not None else None
        wrong = max(found for found in (wrong, opened) if found is not None)
    return ends
