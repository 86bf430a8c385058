"""Question sets are known by ids, outlive the process, and can be pinned."""

import json
import sqlite3

import pytest

from tests.support.dsg import dsg, post
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


async def test_sets_outlive_the_process(serve, fakes):
    """A second service on the same file finds what the first one wrote."""
    body = dsg(item("a red dog"))
    async with serve() as client:
        first = (await post(client, "/score", body)).json()["results"][0]
    async with serve() as client:
        second = (await post(client, "/score", body)).json()["results"][0]

    assert ("miss", "hit") == (first["cache"]["dsg"], second["cache"]["dsg"])
    assert 1 == len(fakes["questions"].calls)


async def test_a_lookup_key_is_no_id(serve, tmp_path):
    """The two hashes are never mixed, not even in memory."""
    async with serve() as client:
        await post(client, "/questions", {"prompts": ["a red dog"]})
        with sqlite3.connect(tmp_path / "questions.sqlite3") as connection:
            [[key]] = connection.execute("SELECT key FROM lookups")
        connection.close()
        answer = await client.get(f"/questions/{key}")

    assert 404 == answer.status_code


async def test_a_set_can_be_pinned_by_id_or_brought_along(serve, fakes):
    """Both score without asking the question LLM; a set of another prompt is refused."""
    async with serve() as client:
        [made] = (await post(client, "/questions", {"prompts": ["a red dog"]})).json()["sets"]
        calls = len(fakes["questions"].calls)
        own = [{key: q[key] for key in ("id", "text", "kind", "depends_on")} for q in made["questions"]]
        by_id = dsg(item("a red dog"), question_set=made["id"])
        brought = dsg(item("a red dog"), question_set=own)
        pinned = [(await post(client, "/score", body)).json()["results"][0] for body in (by_id, brought)]
        other = dsg(item("a blue cat"), question_set=made["id"])
        refused = (await post(client, "/score", other)).json()["results"][0]

    assert calls == len(fakes["questions"].calls)
    assert pinned[0]["scores"] == pinned[1]["scores"]
    assert [made["id"]] * 2 == [p["details"]["dsg"]["question_set"] for p in pinned]
    assert "invalid" == refused["errors"]["dsg"]["code"]


async def test_the_parent_0_means_none_in_a_set_of_the_request_and_of_the_llm(serve, fakes):
    """As in DSG's files: the question is no child, and its id is that of a set without the 0."""
    red = {"id": 1, "kind": "", "text": "Is the dog red?", "depends_on": [0]}
    fakes["questions"].texts = {"a red dog": json.dumps({"questions": [red]})}
    async with serve() as client:
        sent = [
            dsg(item("a red dog"), question_set=[{**red, "depends_on": parents}]) for parents in ([0], [])
        ]
        results = [
            (await post(client, "/score", body)).json()["results"][0]["details"]["dsg"]
            for body in (*sent, dsg(item("a red dog")))
        ]

    assert [[]] * 3 == [each["questions"][0]["depends_on"] for each in results]
    assert 1 == len({each["question_set"] for each in results})
