"""The pages can be read in a hurry: one thought a sentence."""

import re
from collections.abc import Iterator

import pytest

from tests.support.pages import DOCS, ROOT

LONGEST = 40  # words of a sentence
PAGES = [path for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")] if path.name != "CHANGELOG.md"]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page, without its code; a cell of a table ends one, and so does a colon."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    plain = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", prose))
    for block in re.split(r"\n\s*\n|\n(?=\s*[*|#]|\s*\d+\. )", plain):
        for cell in block.split("|") if block.startswith("|") else [block]:
            yield from re.split(r"(?<=[.!?:;])\s+", " ".join(cell.split()))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_sentence_takes_a_second_reading(path):
    """At most forty words."""
    text = path.read_text("utf-8")

    assert [] == [each for each in sentences(text) if len(re.findall(r"[\w'’]+", each)) > LONGEST]
