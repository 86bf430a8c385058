"""docs/client.md, filtering.md and comparing.md: their code runs as it stands."""

import shutil

import pytest

from demo.samples import FOLDER
from tests.support.pages import fences
from tests.support.pictures import png

PAGES = "client.md", "filtering.md", "comparing.md"
EXAMPLES = [text for name in PAGES for _, text in fences(name, "python")]


@pytest.mark.parametrize("code", EXAMPLES, ids=[f"{n}" for n in range(len(EXAMPLES))])
def test_the_example_runs(code, service, tmp_path, monkeypatch, capsys):
    """In a checkout, or a folder with the pictures that it names, and prints what it found."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", service)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FOLDER, tmp_path / "demo" / "samples")
    for name, colour in (("cat", "orange"), ("dog", "brown")):
        (tmp_path / f"{name}.png").write_bytes(png(colour))
    (tmp_path / "broken.png").write_bytes(png()[:40])

    exec(compile(code, "client.md", "exec"), {"__name__": "__main__"})

    assert capsys.readouterr().out
