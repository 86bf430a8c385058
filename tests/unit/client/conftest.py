"""A client whose service is a function, and tables as files."""

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2 as httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate import Client
from scoregate.cli.main import main
from tests.support.pauses import Unpaused

Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
def answered(waited: list[float]) -> Iterator[Callable[..., Client]]:
    """A client whose requests a function answers."""
    made = []

    def make(answer: Answer, **settings: Any) -> Client:
        made.append(Client("http://test", transport=Unpaused(answer, waited), **settings))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def waited() -> list[float]:
    """The waits between attempts, which take no time and set the client's clock forward."""
    return []


@pytest.fixture
def written(tmp_path):
    """A file of rows, as its name says."""

    def write(rows, name="table.jsonl"):
        path = tmp_path / name
        plain = path.with_suffix("") if path.suffix == ".gz" else path
        if plain.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), plain)
        elif plain.suffix in (".csv", ".tsv"):
            with plain.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, rows[0], delimiter="\t" if plain.suffix == ".tsv" else ",")
                writer.writeheader()
                writer.writerows(rows)
        else:
            plain.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        if plain != path:
            path.write_bytes(gzip.compress(plain.read_bytes()))
        return str(path)

    return write


@pytest.fixture
def refused(capsys):
    """The one line with which a command refuses, with status 2."""

    def refused(*arguments):
        assert 2 == main([*map(str, arguments)])
        out, err = capsys.readouterr()
        assert not out
        [line] = err.splitlines()
        return line

    return refused
