"""axe, which tells what keeps people from using a page."""

import json
from pathlib import Path

import axe_core_python

from tests.support.browser import Browser

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text("utf-8")


def violations(browser: Browser) -> list[str]:
    """What axe has against the page: the rule and the elements."""
    browser.run(AXE + "; 0")
    found = json.loads(browser.run("axe.run().then(JSON.stringify)"))
    assert "color-contrast" in {each["id"] for each in found["passes"]}  # axe could tell all colours
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']]}" for each in found["violations"]]
