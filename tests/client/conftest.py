"""A service around fake models, and a client whose service is a function."""

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate import Client
from tests.docs.packages import FAKES, served

Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one process for all tests."""
    with served(tmp_path_factory.mktemp("client"), FAKES) as client:
        yield str(client.base_url)


@pytest.fixture
def client(service: str) -> Iterator[Client]:
    """A client of that service."""
    with Client(service) as client:
        yield client


@pytest.fixture
def answered() -> Iterator[Callable[..., Client]]:
    """A client whose requests a function answers."""
    made = []

    def make(answer: Answer, **settings: Any) -> Client:
        made.append(Client("http://test", transport=httpx.MockTransport(answer), **settings))
        return made[-1]

    yield make
    for client in made:
        client.close()


def request_of(request: httpx.Request) -> dict[str, Any]:
    """The JSON of a form's part `request`."""
    boundary = request.headers["content-type"].partition("boundary=")[2].encode()
    part = request.content.split(b"--" + boundary)[1]
    found: dict[str, Any] = json.loads(part.split(b"\r\n\r\n", 1)[1])
    return found


def scored(request: httpx.Request, **more: Any) -> httpx.Response:
    """A score of 0.5 under every metric for every item that is asked about."""
    asked = request_of(request)
    results = [
        {"index": index, "id": item.get("id"), "scores": dict.fromkeys(asked["metrics"], 0.5)}
        for index, item in enumerate(asked["items"])
    ]
    content = {"request_id": "r", "results": results, "partial": False, "models": {}, "timings_ms": {}}
    return httpx.Response(200, json=content | more)


def numbered(request: httpx.Request) -> httpx.Response:
    """The number of each prompt as its score."""
    results = [
        {"index": index, "scores": {"vqascore": float(item["prompt"].rpartition(" ")[2])}}
        for index, item in enumerate(request_of(request)["items"])
    ]
    return scored(request, results=results)


def problem(status: int, code: str, **more: Any) -> httpx.Response:
    """A refusal in the service's form."""
    return httpx.Response(status, json={"code": code, "detail": f"it is {code}", "request_id": "r"} | more)


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
