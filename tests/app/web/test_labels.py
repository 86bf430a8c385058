"""`POST /decisions/{id}/label`."""

import sqlite3
from contextlib import closing

import pytest

from tests.support.app import service_of
from tests.support.fake_service import key_table
from tests.support.refusals import refused

pytestmark = pytest.mark.anyio
ID = "0123456789abcdef" * 2


def rows(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


async def test_a_label_is_stored_when_it_is_answered(serve, tmp_path):
    """Of any decision, also one in another process' log."""
    path = tmp_path / "decisions.sqlite3"
    async with serve(decisions={"log": f"sqlite:///{path}"}) as client:
        answer = await client.post(f"/decisions/{ID}/label", json={"good": False, "who": "ann"})

        assert (202, {"request_id"}) == (answer.status_code, set(answer.json()))
        assert [(ID, 0, "ann")] == rows(path, "SELECT decision_id, good, who FROM labels")


@pytest.mark.parametrize(
    ("body", "field"), [({}, "good"), ({"good": 1}, "good"), ({"good": True, "whom": "ann"}, "whom")]
)
async def test_a_label_that_is_not_valid_is_refused_by_its_field(serve, tmp_path, body, field):
    """422, and nothing is stored."""
    path = tmp_path / "decisions.sqlite3"
    async with serve(decisions={"log": f"sqlite:///{path}"}) as client:
        answer = await client.post(f"/decisions/{ID}/label", json=body)

    assert (422, [f"/{field}"]) == (answer.status_code, [each["pointer"] for each in answer.json()["errors"]])
    assert [] == rows(path, "SELECT * FROM labels")


async def test_without_a_log_or_with_no_id_of_a_decision_there_is_no_such_path(serve, tmp_path):
    """404, with the setting that is missing."""
    async with serve() as client:
        answer = await client.post(f"/decisions/{ID}/label", json={"good": True})
        assert "decisions.log" in refused(answer, 404, "not_found")["detail"]
    async with serve(decisions={"log": f"sqlite:///{tmp_path}/decisions.sqlite3"}) as client:
        refused(await client.post("/decisions/mine/label", json={"good": True}), 404, "not_found")


async def test_a_label_that_cannot_be_stored_is_an_error(serve, tmp_path):
    """503: people's work is not lost without a word, as rows of decisions may be."""
    async with serve(decisions={"log": f"sqlite:///{tmp_path}/decisions.sqlite3"}) as client:
        connection = service_of(client).decisions._file.connection
        connection.execute("PRAGMA query_only = ON")
        answer = await client.post(f"/decisions/{ID}/label", json={"good": True})
        connection.execute("PRAGMA query_only = OFF")

    refused(answer, 503, "not_ready")


async def test_a_key_labels_only_if_its_endpoints_have_label(serve, tmp_path):
    """Without the right it is 403, also for a key of all other paths."""
    keys = tmp_path / "keys"
    keys.write_text(
        key_table("people", "people's", 'endpoints = ["label"]') + key_table("app", "the app's"), "utf-8"
    )
    log = {"log": f"sqlite:///{tmp_path}/decisions.sqlite3"}
    async with serve(server={"api_keys_file": keys}, decisions=log) as client:
        found = [
            (
                await client.post(f"/decisions/{ID}/label", json={"good": True}, headers={"X-API-Key": key})
            ).status_code
            for key in ("people's", "the app's")
        ]

    assert [202, 403] == found
