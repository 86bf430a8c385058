"""API keys are read again when their file changes; tests/process/docs/guides/test_running.py replaces one."""

from tests.support.pages import DOCS


def test_no_page_says_that_api_keys_are_read_at_the_start_alone():
    """They are read again when their file changes."""
    said = ["API keys](../api.md#keys) is read at the start", "file of keys is read at the start"]
    pages = {path: path.read_text("utf-8") for path in DOCS.rglob("*.md")}

    assert [] == [path for path, text in pages.items() if any(each in text for each in said)]
