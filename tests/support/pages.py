"""The pages of the documentation, as tests read them."""

import re
from collections.abc import Iterator

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("helm/*.md")])

LINK = re.compile(r"\]\(((?![^)]*://)[^)]+)\)")  # of a page to another file or heading
FENCE = re.compile(r"^```(\S+)[ ]?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    """The text of a page."""
    return (DOCS / name).read_text("utf-8")


def section(name: str, heading: str) -> str:
    """The text of a page below *heading* (with its #), up to the next of its level or a higher one."""
    level = len(heading.partition(" ")[0])
    text = page(name).split(f"\n{heading}\n", 1)[1]
    return re.split(rf"^#{{1,{level}}} ", text, maxsplit=1, flags=re.MULTILINE)[0]


def rows(text: str) -> Iterator[list[str]]:
    """Cells of every table row, headings among them."""
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def named_rows(text: str) -> list[list[str]]:
    """The rows whose first cell begins with a name in code type."""
    return [cells for cells in rows(text) if cells[0].startswith("`")]


def fences(name: str, kind: str) -> list[tuple[str, str]]:
    """Info string and text of a page's fenced blocks of one kind."""
    return [(more, text) for found, more, text in FENCE.findall(page(name)) if found == kind]


def requests(name: str) -> list[tuple[str, int, str]]:
    """A page's requests: the route, the status of its answer, and the body, from ```json ROUTE STATUS."""
    found = [(info.split(), text) for info, text in fences(name, "json")]
    return [(info[0], int(info[1]), text) for info, text in found if len(info) == 2]
