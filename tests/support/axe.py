"""axe, which finds what keeps people from using a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import axe_core_python
from playwright.sync_api import Page

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text("utf-8")

OF_COLOURS = ("color-contrast", "link-in-text-block")  # of the rules that axe has switched on


# One element for each look of a text: its contrast is that of all texts of these colours, size and weight.
LOOKS = """() => {
    const looks = new Map();
    const says = (each) => [...each.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    for (const each of [...document.querySelectorAll("body *")].filter(says)) {
        const { color, fontSize, fontWeight, textDecoration } = getComputedStyle(each);
        const look = [each.tagName, color, fontSize, fontWeight, textDecoration];
        for (let one = each; one; one = one.parentElement) {
            const { backgroundColor, backgroundImage, opacity } = getComputedStyle(one);
            look.push(one.tagName, backgroundColor, backgroundImage, opacity);
        }
        looks.set(`${look}`, looks.get(`${look}`) ?? each);
    }
    return [...looks.values()];
}"""


def violations(
    page: Page, *rules: str, never: Sequence[str] = (), within: str = "() => document"
) -> list[str]:
    """
    Return what axe has against the page: the rule and the elements.

    Args:
        rules: that are run; without any, all of them but *never*.
        within: a function of the page that returns the part of it.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    # Without resultTypes it describes all that is right, too.
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    options |= {"runOnly": rules} if rules else {"rules": {rule: {"enabled": False} for rule in never}}
    found = page.evaluate(f"options => axe.run(({within})(), options)", options)
    colours = "color-contrast" in never or "color-contrast" in {each["id"] for each in found["passes"]}
    assert colours  # axe could read all of them
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']]}" for each in found["violations"]]


def violations_in_both_schemes(page: Page) -> list[str]:
    """Return what axe has against the page while it is light, and against its colours when it is dark."""
    found = violations(page)
    page.emulate_media(color_scheme="dark")
    return found + violations(page, *OF_COLOURS)


def violations_of_a_long_page(page: Page) -> list[str]:
    """Return the same of a page whose parts repeat: each look of a text is checked once in each scheme."""
    found = violations(page, never=OF_COLOURS) + violations(page, *OF_COLOURS, within=LOOKS)
    page.emulate_media(color_scheme="dark")
    return found + violations(page, *OF_COLOURS, within=LOOKS)
