"""docs/architecture.md: its tree of files is the one there is."""

from tests.support.pages import ROOT, section

TOPS = ("service", "models")


def documented() -> set[str]:
    """The paths of the tree: a folder at the margin, the files below it indented by two."""
    found, top = set(), ""
    for line in section("architecture.md", "## Files").splitlines():
        name = line.split(" ")[0] if not line.startswith(" ") else line.split()[0]
        if line[:1].isalpha() and name.endswith("/"):
            top = name
        elif line.startswith("  ") and name.endswith(".py"):
            found.add(top + name)
    return found


def declares_a_metric(path):
    """Those files are listed as one, since docs/metrics.md has them."""
    return path.parent.name == "metrics" and "\nmetric = Metric(" in path.read_text("utf-8")


def test_every_file_of_the_service_has_its_place_in_the_architecture():
    """The tree of docs/architecture.md names each module, and none that is gone."""
    existing = {
        str(path.relative_to(ROOT))
        for top in TOPS
        for path in (ROOT / top).rglob("*.py")
        if path.name != "__init__.py" and "demo" not in path.parts and not declares_a_metric(path)
    }

    assert existing == documented()
