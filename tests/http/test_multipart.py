"""Requests whose pictures come as parts of a form."""

import json

import pytest

from tests.conftest import png
from tests.http.refusals import SECRET, parts, refused

pytestmark = pytest.mark.anyio

FILE = ("p.png", png())
FORM = {"Content-Type": "multipart/form-data; boundary=b"}
CHARSET = 'multipart/form-data; boundary=b; charset="{}"'
TEXT = '--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n{}\r\n--b--\r\n'

MULTIPART = {
    "no request part": ({"files": {"p": FILE}}, 400),
    "no JSON": ({"data": {"request": SECRET}, "files": {"p": FILE}}, 400),
    "a missing part": ({"data": {"request": json.dumps(parts("q"))}, "files": {"p": FILE}}, 422),
    "a part without a filename": (
        {"data": {"request": json.dumps(parts()), "p": "x"}, "files": {"q": FILE}},
        422,
    ),
    "too many files": ({"data": {"request": "{}"}, "files": [("p", FILE)] * 129}, 400),
    "too many fields": ({"data": {"request": "{}", "a": "", "b": ""}, "files": {"p": FILE}}, 400),
    "no boundary": ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400),
    "broken": ({"content": f"--b\r\n{SECRET}".encode(), "headers": FORM}, 400),
    "cut": ({"content": TEXT.format("{}")[:60].encode(), "headers": FORM}, 400),
    "another boundary": ({"content": TEXT.replace("--b", "--c").encode(), "headers": FORM}, 400),
    "a strange charset": (
        {"content": TEXT.encode(), "headers": {"Content-Type": CHARSET.format("undefined")}},
        400,
    ),
}


@pytest.mark.parametrize(("sent", "status"), MULTIPART.values(), ids=MULTIPART)
async def test_broken_multipart_is_refused(serve, sent, status, caplog):
    """400 for what cannot be read, 422 for parts that do not exist."""
    async with serve() as client:
        answer = await client.post("/score", **sent)

    refused(answer, status, {400: "malformed", 422: "invalid"}[status])
    assert SECRET not in caplog.text


async def test_the_request_may_be_a_file_part(serve):
    """Some clients give every part a filename."""
    files = {"request": ("request.json", json.dumps(parts())), "p": FILE}
    async with serve() as client:
        answer = await client.post("/score", files=files)
        as_field = await client.post("/score", data={"request": json.dumps(parts())}, files={"p": FILE})

    assert 200 == answer.status_code
    [one], [other] = answer.json()["results"], as_field.json()["results"]
    assert one["scores"] == other["scores"]
