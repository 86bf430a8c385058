"""docs/adr: decisions that fit a page."""

import re

from tests.support.pages import DOCS, page


def test_decisions_fit_a_page():
    """An ADR has at most forty lines: context, decision, consequences."""
    decisions = sorted((DOCS / "adr").glob("0*.md"))

    assert decisions
    for path in decisions:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 40
        assert ["Context", "Decision", "Consequences"] == re.findall(r"^## (.*)$", text, re.MULTILINE)


def test_decisions_are_numbered_one_after_the_other():
    """The number stands in the file's name and in its heading."""
    decisions = sorted((DOCS / "adr").glob("0*.md"))

    for number, path in enumerate(decisions, 1):
        assert path.name.startswith(f"{number:04}-")
        assert path.read_text("utf-8").startswith(f"# {number:04}: ")


def test_the_index_has_all_decisions():
    """By number, with their headings."""
    decisions = sorted((DOCS / "adr").glob("0*.md"))
    headings = [path.read_text("utf-8").partition("\n")[0].removeprefix("# ") for path in decisions]
    entries = [f"* [{heading}]({path.name})" for heading, path in zip(headings, decisions, strict=True)]

    assert entries == re.findall(r"^\* .*$", page("adr/README.md"), re.MULTILINE)
