"""docs/operations/running.md: a key is replaced as the page says, while the service runs."""

import hashlib
import subprocess

import pytest

from service.http import keys
from service.http.keys import KeyFile
from tests.docs.packages import FENCE
from tests.docs.pages import DOCS, page

PAGE = "operations/running.md"
SCRIPTS = {info: text for _, info, text in FENCE.findall(page(PAGE).replace("\n   ", "\n"))}


@pytest.fixture
def step(tmp_path):
    """A script of the page, run beside the file of keys; what it prints."""

    def run(name):
        command = ["bash", "-euo", "pipefail", "-c", SCRIPTS[name]]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    return run


def test_a_key_is_replaced_without_a_restart_and_without_a_gap(tmp_path, step):
    """The old key counts until its line is gone, and the new one from a second after it was added."""
    digest = hashlib.sha256(b"old").hexdigest()
    (tmp_path / "keys.txt").write_text(f"# ours\ntrainer:{digest}\n")
    now = [0.0]
    file = KeyFile(tmp_path / "keys.txt", lambda: now[0])

    def admitted(key):
        now[0] += keys.AGAIN_S
        found = file.keys().of({"x-api-key": key})
        return found and found.name

    new = step("new-key.sh").strip()
    assert ("trainer", "trainer-2") == (admitted("old"), admitted(new))
    step("old-key.sh")
    assert (None, "trainer-2") == (admitted("old"), admitted(new))


def test_no_page_says_that_api_keys_are_read_at_the_start_alone():
    """They are read again when their file changes."""
    said = ["API keys](../api.md#keys) is read at the start", "file of keys is read at the start"]
    pages = {path: path.read_text("utf-8") for path in DOCS.rglob("*.md")}

    assert [] == [path for path, text in pages.items() if any(each in text for each in said)]
