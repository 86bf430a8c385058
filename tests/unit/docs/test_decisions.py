"""docs/adr: decisions that fit a page."""

import re

import pytest

from tests.support.pages import DOCS, page, rows

DECISIONS = sorted((DOCS / "adr").glob("0*.md"))
MOST = 20  # decisions that stand; others are merged, or named by the index alone


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_fits_a_page(path):
    """An ADR has at most forty lines and 300 words: context, decision, consequences."""
    text = path.read_text("utf-8")

    assert len(text.splitlines()) <= 40
    assert len(text.split()) <= 300
    assert ["Context", "Decision", "Consequences"] == re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert text.startswith(f"# {path.stem[:4]}: ")


def test_there_are_few_decisions():
    """Those that are merged into others, or superseded, have no page."""
    assert 0 < len(DECISIONS) <= MOST


def test_the_index_has_all_decisions():
    """Those that stand by number, with their headings; each number that is gone, with where it went."""
    headings = [path.read_text("utf-8").partition("\n")[0].removeprefix("# ") for path in DECISIONS]
    entries = [f"* [{heading}]({path.name})" for heading, path in zip(headings, DECISIONS, strict=True)]
    index = page("adr/README.md")
    gone = {cells[1].strip("`") for cells in rows(index) if cells[1].startswith("`0")}
    numbers = sorted(int(name[:4]) for name in [*gone, *(path.name for path in DECISIONS)])

    assert entries == re.findall(r"^\* .*$", index, re.MULTILINE)
    assert [*range(1, len(numbers) + 1)] == numbers
