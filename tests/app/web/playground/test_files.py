"""The files of the playground: who gets them, with which headers, and what is never in them."""

import pytest

from service.web.routes import pages
from tests.support.fake_service import key_table
from tests.support.refusals import refused


@pytest.mark.anyio
async def test_the_page_and_its_files_need_no_key(serve, tmp_path):
    """All else does, `/docs` included."""
    keys = tmp_path / "keys"
    keys.write_text(key_table("trainer", "secret"))
    async with serve(server={"api_keys_file": keys}) as client:
        answers = [await client.get(path) for path in sorted(pages.PATHS)]
        others = [await client.get(path) for path in ("/docs", "/playground/nothing", "/openapi.json")]

    assert {200} == {answer.status_code for answer in answers}
    assert {401} == {answer.status_code for answer in others}


@pytest.mark.shared
@pytest.mark.anyio
@pytest.mark.parametrize("path", sorted(pages.PATHS))
async def test_a_file_has_a_strict_policy_and_is_sent_once(serve, path):
    """Nothing inline, no other host, no frame around it; with its ETag it is not sent again."""
    async with serve() as client:
        answer = await client.get(path)
        head = await client.head(path)
        again = await client.get(path, headers={"If-None-Match": answer.headers["ETag"]})

    policy = answer.headers["Content-Security-Policy"]
    assert policy == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "media-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert "nosniff" == answer.headers["X-Content-Type-Options"]
    assert (200, b"") == (head.status_code, head.content)
    assert str(len(answer.content)) == head.headers["Content-Length"]
    assert (304, b"") == (again.status_code, again.content)
    assert answer.headers["ETag"] == again.headers["ETag"]


@pytest.mark.shared
@pytest.mark.anyio
async def test_a_file_that_is_not_there_is_a_404(serve):
    """Nor is anything outside of the folder."""
    async with serve() as client:
        for name in ("nothing.js", "..%2Fapp.py", "%2E%2E%2Fapp.py", "index.html/"):
            refused(await client.get(f"/playground/{name}"), 404, "not_found")


@pytest.mark.shared
@pytest.mark.anyio
async def test_docs_lead_to_the_page_about_the_api(serve):
    """By a relative address, so that it also works below a proxy's prefix."""
    async with serve() as client:
        answer = await client.get("/docs")

    assert "playground/docs.html" == answer.headers["Location"]
    assert 307 == answer.status_code
