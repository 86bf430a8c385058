"""What a request for decisions may have, and where its questions are made."""

import json
import threading

import pytest

from service.web.dialects.decisions import routes
from service.web.dialects.questions import MAX_PARTS, MAX_TEXT, MAX_TEXTS
from tests.app.web.dialects.test_decisions import CHOICE, IMAGE, PREDICATE, SGLANG, SYSTEM_ONE, openai

pytestmark = pytest.mark.anyio

JSON = {"Content-Type": "application/json"}
SURROGATE = "\ud800"


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("decisions", openai({**PREDICATE, "name": SURROGATE}), "/questions/0/name"),
        ("decisions", openai({**CHOICE, "choices": [{"value": "a"}, {"value": SURROGATE}]}), "/questions/0"),
        ("decisions", openai(PREDICATE, model=SURROGATE), "/model"),
        ("decisions", {**SGLANG, "questions": [{**SGLANG["questions"][0], "id": SURROGATE}]}, "/questions/0"),
        ("systemone", {**SYSTEM_ONE, "questions": {SURROGATE: SYSTEM_ONE["questions"]["red"]}}, "/questions"),
        ("systemone", {**SYSTEM_ONE, "model": SURROGATE}, "/model"),
    ],
)
async def test_a_name_with_half_a_character_is_the_callers_fault(dialects, path, body, place):
    """No response could hold it."""
    content = json.dumps(body)  # which can say a surrogate
    async with dialects() as apps:
        response = await apps.private.post(f"/v1/{path}", content=content, headers=JSON)

    assert 400 == response.status_code, response.text
    assert response.json()["error"]["param"].startswith(place)


TEXT = {"type": "input_text", "text": ""}
MANY_PARTS = {
    "parts of a message": openai(PREDICATE, image=IMAGE)
    | {"input": [{"content": [IMAGE] + [TEXT] * MAX_PARTS}]},
    "messages": openai(PREDICATE) | {"input": [{"content": "a"}] * (MAX_PARTS + 1)},
    "parts of a question": openai({**PREDICATE, "instructions": [TEXT] * (MAX_PARTS + 1)}),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", MANY_PARTS)
async def test_the_parts_of_a_request_are_counted_before_they_are_read(dialects, name):
    async with dialects() as apps:
        response = await apps.private.post("/v1/decisions", json=MANY_PARTS[name])

    assert 400 == response.status_code
    assert f"at most {MAX_PARTS}" in response.json()["error"]["message"]


@pytest.mark.shared
async def test_the_texts_of_a_request_are_limited_in_all(dialects, fakes):
    """Each question counts the text of the input, which is part of its call."""
    said = "a" * (MAX_TEXT - 100)
    body = openai(*[PREDICATE] * 400, image=IMAGE)
    body["input"][0]["content"].append({"type": "input_text", "text": said})
    async with dialects() as apps:
        response = await apps.private.post("/v1/decisions", json=body)

    assert 400 == response.status_code
    assert "/questions/32" == response.json()["error"]["param"]
    assert f"more than {MAX_TEXTS} characters" in response.json()["error"]["message"]
    assert [] == fakes["vqa"].calls


@pytest.mark.shared
@pytest.mark.parametrize("path", ["decisions", "systemone"])
async def test_the_questions_of_a_large_body_are_made_on_the_threads_that_parse(dialects, path, monkeypatch):
    """Of one of megabytes, so that its texts do not delay other requests."""
    made, within_limits = [], routes.within_limits

    def noted(questions):
        made.append(threading.current_thread())
        return within_limits(questions)

    monkeypatch.setattr(routes, "within_limits", noted)
    body = openai(PREDICATE) if path == "decisions" else SYSTEM_ONE
    async with dialects() as apps:
        for more in ("", "a" * 100_000, "a" * 2_000_000):
            response = await apps.private.post(f"/v1/{path}", json={**body, "ignored": more})
            assert 200 == response.status_code

    assert [True, False, False] == [each is threading.main_thread() for each in made]
