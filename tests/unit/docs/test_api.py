"""docs/api.md: examples that are answered as stated, and what the page says of calls and keys."""

import json
import re

from service.serving.handle import BULK_KEPT_S
from service.web.keys import Keys
from tests.support.pages import PAGES, fences, page

PAGE = "api.md"


def test_the_page_says_what_becomes_of_calls_without_callers():
    """What is cancelled, when, and what is not."""
    [found] = re.findall(
        r"calls that no other request shares .*? finished and stored\.", " ".join(page(PAGE).split())
    )

    assert "bulk ones after ten seconds" in found
    assert 10 == BULK_KEPT_S


def test_the_answers_shown_are_json():
    """Blocks that are no requests can be read as JSON too."""
    answers = [
        text
        for name in (PAGE, "filtering.md", "comparing.md")
        for info, text in fences(name, "json")
        if not info
    ]

    assert answers
    assert all(isinstance(json.loads(text), dict) for text in answers)


def test_the_key_shown_opens_the_service(tmp_path):
    """The tables of docs/api.md are files of keys, with rights and without."""
    keys = []
    for name, text in fences(PAGE, "toml"):
        (tmp_path / name).write_text(text, "utf-8")
        keys.append(Keys.read(tmp_path / name).of({"x-api-key": "correct horse"}))

    expected = [("trainer", None), ("trainer", 60_000)]
    assert expected == [(key.name, key.quota) for key in keys if key]


def test_every_command_that_changes_a_model_sends_json():
    """The operator's port refuses other types."""
    lines = [line for path in PAGES for line in path.read_text("utf-8").splitlines()]
    changes = [line for line in lines if "curl" in line and "/models/" in line]

    assert changes
    assert all("--json" in line or "Content-Type: application/json" in line for line in changes)
