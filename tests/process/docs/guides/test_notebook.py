"""docs/guides/notebook.md: its cells run one after the other, in one process."""

from tests.support.pages import fences
from tests.support.paths import ROOT

PROFILE = str(ROOT / "loadtest" / "fake.toml")


def test_the_cells_run_in_order(tmp_path, monkeypatch, capsys):
    """With fake models in place of the demo's, which tests/process/client/test_load.py loads."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SCOREGATE_CACHE__QUESTIONS", f"sqlite:///{tmp_path}/questions.sqlite3")
    cells = [text for _, text in fences("guides/notebook.md", "python")]
    assert 1 == "".join(cells).count('load("demo")')
    notebook: dict[str, object] = {}
    for cell in cells:
        exec(compile(cell.replace('"demo"', repr(PROFILE)), "notebook.md", "exec"), notebook)

    shown = capsys.readouterr().out.splitlines()
    assert 0 < float(shown[0]) < 1
    assert ["[[0", " [0"] == [line[:3] for line in shown[1:3]]
    assert ["{'vqascore'", "{'vqascore'"] == [line[:11] for line in shown[3:5]]
    assert shown[5] in ("0", "1")
