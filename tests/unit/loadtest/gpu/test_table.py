"""The table and the plot of `make gpu`."""

from xml.etree import ElementTree

import pytest

from loadtest.gpu.results import Row, left_out
from loadtest.gpu.table import HEAD, bar, line, number, plot, table

ROWS = {
    "forward": [
        Row("XXL, 16 × 1, eager", 41.5, "pairs/s", share=0.43, least=0.55, note="300 TFLOP/s"),
        left_out("XXL, compiled", "needs CUDA"),
    ],
    "drift": [Row("float32", 2e-5, "of log P", most=1e-5), Row("bfloat16", note="OSError: a|b", failed=True)],
}


def test_the_table_has_the_machine_and_a_line_for_each_row():
    """What misses its target is bold, and what was left out is not."""
    machine, _, head, rule, *lines = table({"card": "H100", "driver": "580.1"}, ROWS)

    assert "card H100 · driver 580.1" == machine
    assert (f"| {' | '.join(HEAD)} |", len(HEAD)) == (head, rule.count("---"))
    assert [
        "| forward | XXL, 16 × 1, eager | 41.5 pairs/s | **0.43** | ≥ 0.55 **missed** | 300 TFLOP/s |",
        "| forward | XXL, compiled |  |  |  | left out: needs CUDA |",
        "| drift | float32 | **2e-05 of log P** |  | ≤ 1e-05 **missed** |  |",
        "| drift | bfloat16 | **failed** |  |  | OSError: a/b |",
    ] == lines


def test_a_line_on_the_terminal_has_no_empty_cells():
    assert "XXL, 16 × 1, eager · 41.5 pairs/s · 0.43 · ≥ 0.55 missed · 300 TFLOP/s" == line(
        ROWS["forward"][0]
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (12.3456, "12.35"), (2345.6, "2,346"), (1.25e-5, "1.3e-05"), (-9.5, "-9.5")],
)
def test_numbers_have_four_digits(value, text):
    assert text == number(value)


@pytest.mark.parametrize(
    ("row", "length"),
    [
        (Row("a", 90.0, share=0.4, least=0.5), 0.4),
        (Row("a", 2.0, least=4.0), 0.5),
        (Row("a", 100.0, least=4.0), 2.0),
        (Row("a", 0.5, most=1.0), 0.5),
        (Row("a", 90.0), None),
        (left_out("a", "needs CUDA"), None),
    ],
)
def test_a_bar_is_a_share_or_a_figure_over_its_target(row, length):
    assert length == bar(row)


def test_the_plot_has_a_bar_for_each_share_and_target(tmp_path):
    """Red where a target is missed; it is an XML document."""
    plot("a <card>", ROWS, tmp_path / "real.svg")
    [*rects] = ElementTree.parse(tmp_path / "real.svg").getroot().iter("{http://www.w3.org/2000/svg}rect")

    assert ["white", "#c33", "#c33"] == [rect.get("fill") for rect in rects]
    assert ["100%", "94.6", "440.0"] == [rect.get("width") for rect in rects]
