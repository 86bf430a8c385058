"""docs/adr: decisions that fit a page."""

import re

from tests.support.pages import DOCS


def test_decisions_fit_a_page():
    """An ADR has at most forty lines: context, decision, consequences."""
    decisions = sorted((DOCS / "adr").glob("*.md"))

    assert decisions
    for path in decisions:
        text = path.read_text("utf-8")
        assert len(text.splitlines()) <= 40
        assert ["Context", "Decision", "Consequences"] == re.findall(r"^## (.*)$", text, re.MULTILINE)


def test_decisions_are_numbered_one_after_the_other():
    """The number stands in the file's name and in its heading."""
    decisions = sorted((DOCS / "adr").glob("*.md"))

    for number, path in enumerate(decisions, 1):
        assert path.name.startswith(f"{number:04}-")
        assert path.read_text("utf-8").startswith(f"# {number:04}: ")
