"""Tables of every kind, and what in them is no figure."""

import math

import pytest

from scoregate.errors import InputError
from scoregate.evaluation.tables import read_table

ROWS = [{"a": 1.5, "b": "x"}, {"a": 2.5, "b": "y"}]
KINDS = ["t.csv", "t.jsonl", "t.ndjson", "t.parquet", "t.csv.gz", "t.jsonl.gz", "t.parquet.gz"]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_holds_the_same_columns(written, name):
    """Packed or not."""
    table = read_table(written(ROWS, name))

    assert [1.5, 2.5] == table.numbers("a").tolist()
    assert ["x", "y"] == table.texts("b")


def test_lines_of_batch_are_rows(written):
    """Scores by metric, the data set's columns; a metric with an error has an empty cell."""
    rows = [
        {"row": 1, "scores": {"vqascore": 0.9}, "errors": {}, "columns": {"rating": 5}},
        {"row": 2, "scores": {}, "errors": {"vqascore": {"code": "x"}}, "columns": {"rating": 1}},
    ]
    table = read_table(written(rows))

    assert [0.9, pytest.approx(math.nan, nan_ok=True)] == table.numbers("vqascore").tolist()
    assert [5, 1] == table.numbers("rating").tolist()


def test_numbers_in_quotes_are_read_and_counted(written):
    """As they stand in a released table."""
    table = read_table(written([{"a": '"0.5"'}, {"a": '0.25"'}, {"a": "1"}, {"a": ""}], "t.csv"))

    assert [0.5, 0.25, 1.0] == table.numbers("a").tolist()[:3]
    assert math.isnan(table.numbers("a")[3])
    assert 4 == table.unquoted  # two, read twice


def test_rows_with_an_empty_cell_are_left_out_and_counted(written):
    """Empty, null and NaN."""
    table = read_table(
        written([{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": 2, "b": " "}, {"a": float("nan")}])
    )
    a, b = table.complete(table.numbers("a"), table.texts("b"))

    assert ([1.0], ["x"], 3) == (a.tolist(), b, table.dropped)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("high", "'high' is not a number"),
        (True, "True is not a number"),
        (float("inf"), "inf is not finite"),
        ([1], r"\[1\] is not a number"),
        ("1_0", "'1_0' is not a number"),
        ("\u0663", "'\u0663' is not a number"),
        ("\uff11", "'\uff11' is not a number"),
        (10**400, "10+ is not finite"),
    ],
)
def test_what_is_no_number_is_named_with_its_row_and_column(written, cell, said):
    """Nothing is guessed."""
    with pytest.raises(InputError, match=rf"row 2, column a: {said}"):
        read_table(written([{"a": 1}, {"a": cell}])).numbers("a")


def test_a_cell_after_rows_that_were_left_out_is_named_with_its_own_row(written):
    """The row counts in the file."""
    table = read_table(written([{"a": None}, {"a": "1"}, {"a": "x"}]))
    (cells,) = table.complete(table.texts("a"))

    with pytest.raises(InputError, match=r"row 3, column a: .*'x'"):
        table.each("a", int, cells)


def test_a_column_that_is_not_there_is_named_with_those_that_are(written):
    """A misspelt name is seen at once."""
    with pytest.raises(InputError, match="no column 'c'; there are a, b"):
        read_table(written(ROWS)).numbers("c")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.jsonl", b'{"a": 1}\n{half\n', "row 2: not JSON"),
        ("t.csv", b"a,b\n1,2,3\n", "row 1: has more cells"),
        ("t.csv", b"a,b\n", "no row"),
        ("t.csv.gz", b"a,b\n1,2\n", "gzip"),
        ("t.parquet", b"no", "t.parquet"),
        ("t.xls", b"", "must end in"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path, name, content, said):
    """No row is skipped."""
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(InputError, match=said):
        read_table(path)


def test_labels_are_0_or_1_in_words_too(written):
    """Anything else is no label."""
    rows = [{"a": "true"}, {"a": 0}, {"a": False}, {"a": 1.0}]
    assert [1, 0, 0, 1] == read_table(written(rows)).labels("a").tolist()
    with pytest.raises(InputError, match="'maybe' is not a label"):
        read_table(written([{"a": "maybe"}])).labels("a")
