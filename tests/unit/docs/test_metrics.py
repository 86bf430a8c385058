"""Metrics on the pages: in the README, in the comparison, and in docs/reference/metrics.md."""

import re

from service.metrics.common.registry import own
from tests.support.pages import DOCS, ROOT, named_rows, page, rows, section


def test_the_readme_names_every_metric():
    """In its table, in code type."""
    cells = [cells[0] for cells in named_rows((ROOT / "README.md").read_text("utf-8"))]

    assert set(own()) == set(re.findall(r"`(\w+)`", " ".join(cells)))


def test_the_comparison_counts_the_metrics():
    """In the row about other metrics; `vqascore` has a row of its own."""
    [cells] = [cells for cells in rows(page("comparison.md")) if cells[0] == "other metrics"]

    assert cells[-1].startswith(f"{len(own()) - 1} [metrics](")


def test_the_roadmap_has_nothing_to_come_that_has_a_page():
    """What is there is documented."""
    named = re.findall(r"^\* \*\*(.*?)\*\*", section("comparison.md", "## Next"), re.MULTILINE)

    assert named
    assert [] == [name for name in named if (DOCS / f"{name.lower()}.md").exists()]


def test_no_metric_claims_the_instructions_of_a_paper():
    """What the question LLM is told is our own; the page says so of each style that has a paper's name."""
    assert "written as in the paper" not in page("reference/metrics.md")
    assert "The instructions to the LLM and their examples are our own" in section(
        "reference/metrics.md", "## dsg"
    )
