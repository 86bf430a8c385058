"""A score for each word of a prompt (announced by Gecko, Wiles et al. 2024, appendix F.7)."""

import re
from collections.abc import Sequence
from statistics import fmean

from typing_extensions import TypedDict

WORD = re.compile(r"\w+(?:['’-]\w+)*")


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
        scores = [score for stems, score in about if stem(word) in stems]
        found.append({"word": word, "score": fmean(scores) if scores else None})
    return found


def stem(word: str) -> str:
    """Return a word without its case and its plural, so that "circle" covers "Circles"."""
    lower = word.casefold()
    if len(lower) > 4 and lower.endswith(("ses", "xes", "zes", "ches", "shes")):
        return lower[:-2]
    return lower[:-1] if len(lower) > 3 and lower.endswith("s") and not lower.endswith("ss") else lower
