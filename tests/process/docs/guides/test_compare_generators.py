"""docs/guides/compare-generators.md: its program compares the generators of its tables."""

import runpy
import shutil

from demo.samples import FOLDER
from tests.support.packages import files_of


def test_the_program_prints_a_line_for_each_pair(tmp_path, monkeypatch, fake_service, capsys):
    """The second run prints the same, without a request."""
    folder = tmp_path / "samples"
    shutil.copytree(FOLDER, folder)
    for name, text in files_of("guides/compare-generators.md").items():
        (folder / name).write_text(text, "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SCOREGATE_BASE_URL", fake_service.url)
    first = []
    for requested in (12, 0):
        runpy.run_path(str(folder / "compare.py"))
        out, err = capsys.readouterr()
        first.append(out)
        assert f"12 of 12 rows have all scores; {requested} were requested in this run" in err

    assert first[0].startswith("vqascore ")
    assert first[0].endswith(" 6\n")
    assert first[0] == first[1]
