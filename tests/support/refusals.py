"""Requests that hold a secret, and what every refusal of one has in common."""

import httpx

from tests.support.pictures import item

SECRET = "xyzzy"  # stands in every prompt here, and must stand in no answer and no log
JSON = {"Content-Type": "application/json"}


def refused(answer: httpx.Response, status: int, code: str) -> dict:
    """The problem that *answer* holds, checked."""
    body = answer.json()
    assert (status, code) == (answer.status_code, body["code"])
    assert status == body["status"]
    assert "application/problem+json" == answer.headers["Content-Type"]
    assert answer.headers["X-Request-Id"] == body["request_id"]
    assert SECRET not in answer.text
    assert len(answer.content) < 10_000
    return body


def request(**fields) -> dict:
    return {"items": [item(f"a red {SECRET}")], **fields}


def parts(name: str = "p", **fields) -> dict:
    return {"items": [item(SECRET, {"part": name})], **fields}
