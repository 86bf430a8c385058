"""Words and typography of texts, and a score for each word (announced by Gecko, Wiles et al. 2024, F.7)."""

import re
from collections.abc import Sequence
from statistics import fmean
from unicodedata import east_asian_width, normalize

from typing_extensions import TypedDict

WORD = re.compile(r"\w[\w\u0300-\u036f]*(?:['’-]\w[\w\u0300-\u036f]*)*")  # with combining accents
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
