"""axe, which finds what keeps people from using a page."""

from pathlib import Path

import axe_core_python
from playwright.sync_api import Page

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text("utf-8")

OF_COLOURS = ("color-contrast", "link-in-text-block")  # of the rules that axe has switched on


def violations(page: Page, *rules: str) -> list[str]:
    """Return what axe has against the page: the rule and the elements.  It has *rules*, or all of them."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    # Without resultTypes it describes all that is right, too.
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found = page.evaluate("options => axe.run(options)", options)
    assert "color-contrast" in {each["id"] for each in found["passes"]}  # axe could read all colours
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']]}" for each in found["violations"]]


def violations_in_both_schemes(page: Page) -> list[str]:
    """Return what axe has against the page while it is light, and against its colours when it is dark."""
    found = violations(page)
    page.emulate_media(color_scheme="dark")
    return found + violations(page, *OF_COLOURS)
