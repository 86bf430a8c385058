"""Requests whose pictures come as parts of a form."""

import json
import tempfile

import PIL.Image
import pytest

from service.images.frames import MAX_FILES
from service.metrics.common.contract import MAX_IMAGES
from service.web.server.multipart import MAX_FIELD_BYTES, MAX_FIELDS
from tests.support.pictures import png, saved
from tests.support.refusals import SECRET, parts, refused
from tests.unit.web.test_multipart import form, named

pytestmark = pytest.mark.anyio

FILE = ("p.png", png())
FORM = {"Content-Type": "multipart/form-data; boundary=b"}
FORM_C = "multipart/form-data; boundary=c"
LONG = bytes(MAX_FIELD_BYTES // 2 + 1)

MULTIPART = {
    "no request part": ({"files": {"p": FILE}}, 422),
    "no JSON": ({"data": {"request": SECRET}, "files": {"p": FILE}}, 400),
    "a missing part": ({"data": {"request": json.dumps(parts("q"))}, "files": {"p": FILE}}, 422),
    "a part without a filename": (
        {"data": {"request": json.dumps(parts()), "p": "x"}, "files": {"q": FILE}},
        422,
    ),
    "fields beside the request": ({"data": {"request": "{}", "a": "", "b": ""}, "files": {"p": FILE}}, 422),
    "too many fields": (form(*[named(b"%d" % n) for n in range(MAX_FIELDS + 1)]), 400),
    "fields that are too long": (form(*[named(b"%d" % n, data=LONG) for n in range(2)]), 400),
    "two files of one name": ({"data": {"request": "{}"}, "files": [("p", FILE), ("p", FILE)]}, 400),
    "two requests": (form(named(b"request"), named(b"request")), 400),
    "no boundary": ({"content": b"x", "headers": {"Content-Type": "multipart/form-data"}}, 400),
    "a boundary that is too long": (form(named(b"request"), boundary=b"b" * 300), 400),
    "another boundary": ({**form(named(b"request")), "headers": {"Content-Type": FORM_C}}, 400),
    "broken": ({"content": f"--b\r\n{SECRET}".encode(), "headers": FORM}, 400),
    "cut in its headers": ({"content": form(named(b"request"))["content"][:40], "headers": FORM}, 400),
    "cut before its end": (form(named(b"request"), end=b""), 400),
    "a part without headers": (form(([], b"{}")), 400),
    "a part without a name": (form(([b"Content-Type: text/plain"], b"{}")), 400),
    "a name that is too long": (form(named(b"x" * 257)), 400),
    "a name that is not UTF-8": (form(named(b"\xff")), 400),
    "long headers": (form(named(b"request", b"X-Long: " + b"x" * 4096)), 400),
    "many headers": (form(named(b"request", *[b"X: x"] * 1000)), 400),
    "many options": (form(named(b"request", options=b"; a=b" * 100)), 400),
    "the text in punycode": (form(named(b"request"), charset="punycode"), 400),
    "the text in latin-1": (form(named(b"request"), charset="latin-1"), 400),
    "a part in punycode": (form(named(b"request", b"Content-Type: text/plain; charset=punycode")), 400),
    "text that is not UTF-8": (form(named(b"request", data=b'{"prompt": "\xff"}')), 400),
    "much before the first part": ({"content": b"\r\n" * 5000 + form()["content"], "headers": FORM}, 400),
    "much after a delimiter": (
        {"content": b"--b\r\nX: x\r\n\r\n\r\n--b" + b" " * 5000, "headers": FORM},
        400,
    ),
}


@pytest.mark.shared
@pytest.mark.parametrize(("sent", "status"), MULTIPART.values(), ids=MULTIPART)
async def test_broken_multipart_is_refused(serve, sent, status, caplog):
    """400 for what cannot be read, 422 for parts that do not exist."""
    async with serve() as client:
        answer = await client.post("/score", **sent)

    refused(answer, status, {400: "malformed", 422: "invalid"}[status])
    assert SECRET not in caplog.text


@pytest.mark.shared
async def test_the_request_may_be_a_file_part(serve):
    """Some clients give every part a filename."""
    files = {"request": ("request.json", json.dumps(parts())), "p": FILE}
    async with serve() as client:
        answer = await client.post("/score", files=files)
        as_field = await client.post("/score", data={"request": json.dumps(parts())}, files={"p": FILE})

    assert 200 == answer.status_code
    [one], [other] = answer.json()["results"], as_field.json()["results"]
    assert one["scores"] == other["scores"]


async def test_as_many_files_are_taken_as_a_request_can_name(serve):
    """One more is refused, whether it has a name of its own or not."""
    async with serve(server={"max_items": 1}) as client:
        files = [(f"p{n}", FILE) for n in range(MAX_IMAGES)]
        named = [{"part": name} for name, _ in files]
        anchored = {"image": named[:MAX_FILES], "references": named[MAX_FILES:-1]}
        options = {"judge": {"rubric": "anchored_likeness"}}
        body = {"items": [{"prompt": SECRET, **anchored}], "metrics": ["judge"], "options": options}
        request = {"data": {"request": json.dumps(body)}}
        taken = await client.post("/score", files=files, **request)
        more = [(f"q{n}", FILE) for n in range(2)]
        refusal = await client.post("/score", files=files + more, **request)

    assert 200 == taken.status_code
    refused(refusal, 400, "malformed")


async def test_nothing_is_written_to_disk(serve, monkeypatch):
    """A temporary directory that is full, or missing, fails no upload."""
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    async with serve() as client:
        large = ("p.bmp", saved(PIL.Image.new("RGB", (1000, 500)), "BMP"))
        answer = await client.post("/score", data={"request": json.dumps(parts())}, files={"p": large})

    assert 200 == answer.status_code
