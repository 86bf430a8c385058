"""Pages, docstrings, comments and messages use the words of a manual."""

import io
import re
import tokenize
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.support.pages import DOCS, ROOT

# Words that give code a will, or that leave out the noun they stand for.
BANNED = re.compile(
    r"\b(told|tells?|telling|asked|asks?|asking|nobody|owed|owes?|knows?|knew|beside|is none|are none"
    r"|came of|comes of|at once|for good|leaves|looks|wants|thinks|as often as|as long again)\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"`[^`]*`|\]\([^)]*\)")  # code, and where a link leads
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
PAGES = [path for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")] if path.name != "CHANGELOG.md"]
FOLDERS = "service", "models", "demo", "loadtest", "client/src/scoregate"
PACKAGES = [path for folder in FOLDERS for path in (ROOT / folder).iterdir() if path.name[0] not in "._"]
WRITTEN = tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)


def findings(text: str) -> list[str]:
    """Return the lines of *text* that hold a banned word outside of code."""
    lines = FENCED.sub("", text).splitlines()
    return [line.strip() for line in lines if BANNED.search(QUOTED.sub(" ", line))]


def written(path: Path) -> Iterator[str]:
    """Yield the comments and strings of a Python file."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
    return (token.string for token in tokens if token.type in WRITTEN)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_uses_the_words_of_a_manual(path):
    """No page says what code asks, tells or knows; CONTRIBUTING has the rule."""
    assert [] == findings(path.read_text("utf-8"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_docstrings_comments_and_messages_use_the_words_of_a_manual(package):
    """The same words are out in all strings of the source; a prompt for a language model is a text file."""
    files = package.rglob("*.py") if package.is_dir() else [package] * (package.suffix == ".py")

    assert [] == list(chain.from_iterable(findings(text) for path in files for text in written(path)))


@pytest.mark.parametrize(
    ("text", "found"),
    [("The queue asks the model.", 1), ("Call `ask()`.", 0), ("```\nask\n```\nNobody waits.", 1)],
)
def test_words_in_code_are_names(text, found):
    """What stands in backticks, and where a link leads, is not read."""
    assert found == len(findings(text))
