"""Tables as files, and the command on them."""

import csv
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate.cli.main import main

RELEASED = Path(__file__).parents[2] / "golden" / "evaluation"


@pytest.fixture
def written(tmp_path):
    """A file of rows, as its name says."""

    def write(rows, name="table.jsonl"):
        path = tmp_path / name
        plain = path.with_suffix("") if path.suffix == ".gz" else path
        if plain.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), plain)
        elif plain.suffix == ".csv":
            with plain.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(rows)
        else:
            plain.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        if plain != path:
            path.write_bytes(gzip.compress(plain.read_bytes()))
        return str(path)

    return write


@pytest.fixture
def evaluate(capsys):
    """The command's JSON; its status is 0."""

    def evaluate(*arguments):
        code = main(["evaluate", *map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert (0, "") == (code, err)
        return json.loads(out)

    return evaluate


@pytest.fixture
def refused(capsys):
    """The one line with which the command refuses, with status 2."""

    def refused(*arguments):
        assert 2 == main(["evaluate", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert not out
        [line] = err.splitlines()
        return line

    return refused
