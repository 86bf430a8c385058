"""The results of `make gpu`: rows, their targets, and the file that a stopped run goes on with."""

import json

import pytest

from loadtest.gpu.results import Results, Row, left_out

CARD = {"card": "H100", "driver": "580.1"}


@pytest.mark.parametrize(
    ("row", "met"),
    [
        (Row("rate", 3.0, "×", least=3), True),
        (Row("rate", 2.9, "×", least=3), False),
        (Row("drift", 1e-5, most=1e-5), True),
        (Row("drift", 2e-5, most=1e-5), False),
        (Row("passes", 90.0, "pairs/s", share=0.5, least=0.55), False),
        (Row("rate", 3.0, "×"), None),
        (left_out("FP8", "needs CUDA"), None),
    ],
)
def test_a_target_judges_the_share_or_else_the_value(row, met):
    """Without a target or a figure nothing is judged."""
    assert row.met is met
    assert row.red is (met is False)


def test_what_failed_is_red():
    assert Row("drift", note="RuntimeError: no", failed=True).red


def test_a_file_is_read_again(tmp_path):
    """The rows of a later run of a step stand in place of the earlier ones."""
    file = tmp_path / "folder" / "real.jsonl"
    first = Results(file, CARD)
    first.add("limits", "copies", [Row("copy", 50.0, "GB/s")])
    first.add("limits", "products", [Row("product", note="no", failed=True)])
    first.add("limits", "copies", [Row("copy", 51.0, "GB/s")])
    again = Results(file, CARD)

    assert [Row("copy", 51.0, "GB/s"), Row("product", note="no", failed=True)] == [*again.of("limits")]
    assert 51.0 == again.value("limits", "copy")
    assert again.has("limits", "copies")
    assert not again.has("limits", "products")  # so it is measured again
    assert not again.has("forward", "copies")


def test_the_figures_of_another_machine_do_not_count(tmp_path):
    """Another driver is another machine; its lines follow in the same file."""
    file = tmp_path / "real.jsonl"
    Results(file, CARD).add("limits", "copies", [Row("copy", 50.0, "GB/s")])
    other = Results(file, CARD | {"driver": "590.2"})

    assert [] == [*other.of("limits")]
    assert [] == [*Results(file, CARD).of("limits")]
    assert 4 == len(file.read_text().splitlines())


def test_a_line_that_a_killed_run_did_not_finish_is_ignored(tmp_path):
    file = tmp_path / "real.jsonl"
    Results(file, CARD).add("limits", "copies", [Row("copy", 50.0, "GB/s")])
    with file.open("a") as lines:
        lines.write('{"part": "limits", "st')

    assert 50.0 == Results(file, CARD).value("limits", "copy")


def test_each_line_names_its_part_its_step_and_its_rows(tmp_path):
    """The format that others may read."""
    file = tmp_path / "real.jsonl"
    Results(file, CARD).add("limits", "copies", [Row("copy", 50.0, "GB/s")])
    machine, entry = map(json.loads, file.read_text().splitlines())

    assert {"machine": CARD} == machine
    assert ("limits", "copies") == (entry["part"], entry["step"])
    assert {"what": "copy", "value": 50.0, "unit": "GB/s"}.items() <= entry["rows"][0].items()
