"""docs/client.md: its code runs as it stands."""

import re

import pytest

from scoregate import Client
from tests.conftest import png
from tests.docs.pages import fences, named_rows, page

EXAMPLES = [text for _, text in fences("client.md", "python")]

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("code", EXAMPLES, ids=[f"{n}" for n in range(len(EXAMPLES))])
def test_the_example_runs(code, service, tmp_path, monkeypatch, capsys):
    """In a folder with the pictures that it names, and prints what it found."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", service)
    monkeypatch.chdir(tmp_path)
    for name, colour in (("cat", "orange"), ("dog", "brown")):
        (tmp_path / f"{name}.png").write_bytes(png(colour))
    (tmp_path / "broken.png").write_bytes(png()[:40])

    exec(compile(code, "client.md", "exec"), {"__name__": "__main__"})

    assert capsys.readouterr().out


def test_every_method_is_in_the_table():
    """And no other."""
    cells = [row[0] for row in named_rows(page("client.md"))]
    named = {name for cell in cells for name in re.findall(r"`(\w+)\(", cell)}
    methods = {name for name in vars(Client) if name[0] != "_"} - {"base_url", "close"}

    assert methods == named
    assert len(EXAMPLES) >= 6
