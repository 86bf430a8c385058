"""axe, which finds what keeps people from using a page."""

from pathlib import Path

import axe_core_python
from playwright.sync_api import Page

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text("utf-8")


def violations(page: Page) -> list[str]:
    """Return what axe has against the page: the rule and the elements."""
    page.evaluate(AXE)
    found = page.evaluate(
        "axe.run({resultTypes: ['violations']})"
    )  # else it describes all that is right, too
    assert "color-contrast" in {each["id"] for each in found["passes"]}  # axe could read all colours
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']]}" for each in found["violations"]]
