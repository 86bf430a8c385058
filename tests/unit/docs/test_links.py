"""Every relative link leads to a file, and to a heading in it."""

import re

import pytest

from tests.support.pages import LINK, PAGES, ROOT

README = ROOT / "README.md"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(path):
    """Every relative link of a page has its target."""
    for target in LINK.findall(path.read_text("utf-8")):
        file, _, anchor = target.partition("#")
        place = (path.parent / file) if file else path
        assert place.is_file(), target
        if not anchor:
            continue
        headings = re.findall(r"^#+ (.*)$", place.read_text("utf-8"), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, target


@pytest.mark.parametrize(
    "path", [p for p in PAGES if "adr" not in p.parts and p != README], ids=lambda path: path.name
)
def test_every_page_is_reached_from_the_readme(path):
    """Nobody looks through a folder."""
    assert f"({path.relative_to(ROOT)})" in README.read_text("utf-8")


def test_files_that_are_named_exist():
    """Paths of source files in code type, in the pages and in the files beside them."""
    named = re.compile(r"`((?:service|models|tests|demo|loadtest|benchmarks|deploy)/[\w./-]*\w)`")
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in PAGES
        for name in named.findall(path.read_text("utf-8"))
        if not (ROOT / name).exists()
    ]

    assert [] == missing
