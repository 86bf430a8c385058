"""Pages, docstrings, comments and messages use the words of a manual."""

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.support.pages import DOCS, ROOT

# Words that give code a will, or that leave out the noun they stand for.
BANNED = re.compile(
    r"\b(told|tells?|telling|asked|asks|asking|nobody|owed|owes?|knows|knew|beside|came of|comes of|for good"
    r"|leaves|looks(?! like)|wants|thinks|as often as|as long again)\b",
    re.IGNORECASE,
)
# Names: code, where a link leads, a parameter in prose, a value in a format, an entry of Args.
NAMES = re.compile(r"`[^`]*`|\]\([^)]*\)|\*[a-z_]+\*|\{[^}]*\}|^\s*[a-z_, ]+:\s|\basked\|", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
ALLOWED = {
    "as the prompt asks]": "GenEval's formula",
    "a question is asked twice": "a repair that is stored with question sets",
    "No text asked for": "the title of an error, fixed by the wire contract",
    "No objects asked for": "likewise",
    "above below beside": "a list of prepositions",
}
PAGES = [
    path
    for folder in (ROOT.glob("*.md"), ROOT.glob("helm/*.md"), DOCS.rglob("*.md"))
    for path in folder
    if path.name != "CHANGELOG.md"
]
FOLDERS = "service", "models", "demo", "loadtest", "client/src/scoregate"
PACKAGES = [path for folder in FOLDERS for path in (ROOT / folder).iterdir() if path.name[0] not in "._"]
STRINGS = tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)
SPOKEN = "service", "models"  # where all strings are read: elsewhere some are data, or quoted output


def findings(text: str) -> list[str]:
    """Return the lines of *text* that hold a banned word outside of code."""
    lines = FENCED.sub("", text).splitlines()
    found = [line.strip() for line in lines if BANNED.search(NAMES.sub(" ", line))]
    return [line for line in found if not any(quoted in line for quoted in ALLOWED)]


@cache
def words(path: Path) -> list[tokenize.TokenInfo]:
    """Return the comments and strings of a Python file, which is read once for both tests."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
    return [token for token in tokens if token.type in (tokenize.COMMENT, *STRINGS)]


def written(path: Path) -> Iterator[str]:
    """Yield the comments, the docstrings and, of the service and the models, all strings of a Python file."""
    every = path.relative_to(ROOT).parts[0] in SPOKEN
    for token in words(path):
        docstring = token.type == tokenize.STRING and token.string.startswith('"""')
        if token.type == tokenize.COMMENT or docstring or (every and token.type in STRINGS):
            yield token.string


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_uses_the_words_of_a_manual(path):
    """No page says what code asks, tells or knows; CONTRIBUTING has the rule."""
    assert [] == findings(path.read_text("utf-8"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_docstrings_comments_and_messages_use_the_words_of_a_manual(package):
    """The same words are out in all strings of the source; a prompt for a language model is a text file."""
    files = package.rglob("*.py") if package.is_dir() else [package] * (package.suffix == ".py")

    assert [] == list(chain.from_iterable(findings(text) for path in files for text in written(path)))


# Places whose comments are clauses, or name what a line holds; "of a request" leaves out what is meant.
CLAUSES = [*FOLDERS, "deploy", "scoregate_server.py"]
FRAGMENT = re.compile(
    r"# (of|per|by|as|in|such|that|which|whose|or|and|else|between|about|until|likewise|besides)\b",
    re.IGNORECASE,
)
COMMENT = re.compile(r"(?<!\S)#.*")
COMMENTED = {".py", ".toml", ".yaml", ".yml", ".conf", ".service", ".sh"}


@pytest.mark.parametrize("place", CLAUSES)
def test_a_comment_is_a_clause_and_no_fragment(place):
    """It does not begin with a word that only continues a sentence; further lines of a comment may."""
    top, found = ROOT / place, []
    for path in [top] if top.is_file() else [path for path in top.rglob("*") if path.suffix in COMMENTED]:
        last = 0
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if comment := COMMENT.search(line):
                alone = not line[: comment.start()].strip()
                if FRAGMENT.match(comment[0]) and not (alone and number == last + 1):
                    found.append(f"{path.name}:{number}: {comment[0]}")
                last = number if alone else last

    assert [] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [("The queue asks the model.", 1), ("Call `asks()`.", 0), ("```\nasks\n```\nNobody waits.", 1)],
)
def test_words_in_code_are_names(text, found):
    """What stands in backticks, and where a link leads, is not read."""
    assert found == len(findings(text))
