"""Text in a picture against the text that it should show, as OneIG and LongText compare them."""

import re
from collections import Counter

ACCENTED_LETTERS = "àâäéèêëîïôöùûüç"
DROPPED_CHARACTERS = re.compile(rf"[^\u4e00-\u9fa5a-zA-Z0-9\s{ACCENTED_LETTERS}{ACCENTED_LETTERS.upper()}]")
CHINESE = re.compile("[\u4e00-\u9fff]")
REMARKS = ("addCriterion", "No text recognized.")  # the model that reads adds them; no picture has them


def without_remarks(read: str, remarks: tuple[str, ...] = REMARKS) -> str:
    """Return what was read without remarks of the model."""
    for remark in remarks:
        read = read.replace(remark, "")
    return read


def is_chinese(text: str) -> bool:
    """Return whether a text has a Chinese character."""
    return CHINESE.search(text) is not None


def plain(text: str, *, characters: bool) -> str:
    """Return a text without punctuation: words with single spaces, or *characters* without any."""
    kept = DROPPED_CHARACTERS.sub("", text).split()
    return "".join(kept) if characters else " ".join(kept)


def matches(wanted: str, read: str, *, characters: bool) -> list[float]:
    """Return 1 for each wanted word, or character, that was read as often, and 0 for the others."""
    units, found = (Counter(text if characters else text.split()) for text in (wanted, read))
    right = (units & found).total()
    return [1.0] * right + [0.0] * (units.total() - right)
