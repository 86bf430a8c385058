"""README.md: the example in Python."""

import re

from tests.support.paths import ROOT


def test_the_first_example_prints_the_score_in_its_comment(monkeypatch, capsys):
    """In a checkout, with the demo models and without a server."""
    code, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    [stated] = re.findall(r"# ([\d.]+)$", code, re.MULTILINE)
    monkeypatch.chdir(ROOT)
    exec(compile(code, "README.md", "exec"), {})

    assert abs(float(stated) - float(capsys.readouterr().out)) < 0.001
