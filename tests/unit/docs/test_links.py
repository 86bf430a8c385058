"""Every relative link leads to a file, and to a heading in it."""

import re

import pytest

from tests.support.pages import DOCS, LINK, PAGES, ROOT

INDEX = DOCS / "README.md"


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
    "path",
    [p for p in PAGES if "adr" not in p.parts and p not in (INDEX, ROOT / "README.md")],
    ids=lambda path: path.name,
)
def test_every_page_is_two_clicks_away(path):
    """The README links to each task of the index, which has all pages."""
    linked = {
        (DOCS / target.partition("#")[0]).resolve() for target in LINK.findall(INDEX.read_text("utf-8"))
    }

    assert path in linked


def test_the_readme_has_a_link_to_each_task_of_the_index():
    """In the order of the index."""
    tasks = [
        name.lower().replace(" ", "-")
        for name in re.findall(r"^## (.*)$", INDEX.read_text("utf-8"), re.MULTILINE)
    ]

    assert tasks == re.findall(r"\(docs/README\.md#([\w-]+)\)", (ROOT / "README.md").read_text("utf-8"))


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
