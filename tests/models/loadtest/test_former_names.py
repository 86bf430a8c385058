"""`python -m benchmarks.gpu` and `.shards`: former names of commands of `loadtest/`."""

import runpy
import sys

import pytest


@pytest.mark.parametrize("name", ["gpu", "shards"])
def test_a_former_name_runs_the_command_of_the_load_test(name, monkeypatch, capsys):
    """Its arguments and its help are that command's."""
    helps = []
    for package in ("benchmarks", "loadtest"):
        for module in (f"loadtest.{name}", f"loadtest.{name}.__main__"):  # runpy warns about imported ones
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setattr("sys.argv", [name, "--help"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(f"{package}.{name}", run_name="__main__", alter_sys=True)
        assert 0 == ended.value.code
        helps.append(capsys.readouterr().out)

    assert helps[0] == helps[1]
    assert "usage:" in helps[0]
