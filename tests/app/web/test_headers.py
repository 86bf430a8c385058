"""What browsers are told: headers of every answer, and whose pages may read one."""

import pytest

from tests.support.fake_service import key_table
from tests.support.refusals import request

pytestmark = pytest.mark.anyio

PAGE = "https://studio.example"
ASKS = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


@pytest.mark.shared
async def test_every_answer_forbids_browsers_to_guess_frame_or_run_it(serve):
    """Scores, refusals and what is not there."""
    async with serve() as client:
        answers = [
            await client.post("/score", json=request()),
            await client.post("/score", content=b"{"),
            await client.get("/nothing"),
            await client.get("/livez"),
        ]

    for answer in answers:
        assert "nosniff" == answer.headers["X-Content-Type-Options"]
        assert "default-src 'none'; frame-ancestors 'none'" == answer.headers["Content-Security-Policy"]
        assert "no-referrer" == answer.headers["Referrer-Policy"]


@pytest.mark.shared
async def test_a_page_of_ours_keeps_the_policy_that_it_has_set(serve):
    """The playground runs scripts."""
    async with serve() as client:
        page = await client.get("/")

    assert 200 == page.status_code
    assert [page.headers["Content-Security-Policy"]] == page.headers.get_list("Content-Security-Policy")
    assert "script-src" in page.headers["Content-Security-Policy"]


@pytest.mark.shared
async def test_pages_of_other_hosts_may_read_nothing_unless_they_are_listed(serve):
    """There is no header that says so, and the question before is not answered."""
    async with serve() as client:
        asked = await client.options("/score", headers=ASKS)
        sent = await client.post("/score", json=request(), headers={"Origin": PAGE})

    assert 405 == asked.status_code
    for answer in (asked, sent):
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_pages_of_listed_hosts_may_read_answers_and_refusals(serve, tmp_path):
    """A browser asks without a key first; then a refusal for the lack of one can be read as well."""
    keys = tmp_path / "keys"
    keys.write_text(key_table("k", "k"))
    async with serve(server={"cors_origins": [PAGE], "api_keys_file": keys}) as client:
        asked = await client.options("/score", headers=ASKS)
        answers = [
            await client.post("/score", json=request(), headers={"Origin": PAGE, "X-API-Key": key})
            for key in ("k", "x")
        ]
        foreign = await client.options("/score", headers={**ASKS, "Origin": "https://else.example"})

    assert 200 == asked.status_code
    assert asked.headers["X-Request-Id"]
    assert "nosniff" == asked.headers["X-Content-Type-Options"]
    assert {"authorization", "content-type"} <= set(
        asked.headers["Access-Control-Allow-Headers"].lower().split(", ")
    )
    assert [200, 401] == [answer.status_code for answer in answers]
    for answer in (asked, *answers):
        assert PAGE == answer.headers["Access-Control-Allow-Origin"]
        assert "Access-Control-Allow-Credentials" not in answer.headers
    for answer in answers:
        assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]
    assert 400 == foreign.status_code
    assert "Access-Control-Allow-Origin" not in foreign.headers
