"""docs/operations/running.md: its steps, run on a service that keeps running."""

import hashlib
import os
import stat
import subprocess

import pytest

from tests.docs.packages import FAKES, files_of, served
from tests.docs.pages import page
from tests.support.service import until

PAGE = "operations/running.md"


@pytest.fixture
def scripts(tmp_path):
    """The page's scripts, as they are pasted: a function that runs one and returns what it prints."""
    for name, text in files_of(PAGE).items():
        (tmp_path / name).write_text(text, "utf-8")

    def run(name, *arguments):
        command = ["bash", str(tmp_path / name), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    return run


@pytest.mark.integration
def test_a_key_is_replaced_while_the_service_runs(tmp_path, scripts):
    """The new one works beside the old one, then the old one is refused; nothing is restarted."""
    file = tmp_path / "keys.txt"
    file.write_text(f"# ours\ntrainer:{hashlib.sha256(b'old').hexdigest()} lanes=bulk\n", "utf-8")
    os.chmod(file, 0o640)
    with served(tmp_path, FAKES, SCOREGATE_SERVER__API_KEYS_FILE=str(file)) as client:

        def status(key):
            return client.get("/models", headers={"X-API-Key": key}).status_code

        before = status("old")
        new = scripts("add-key.sh", file, "trainer-2")
        until(lambda: status(new) == 200)
        both = status("old")
        scripts("remove-key.sh", file, "trainer")
        until(lambda: status("old") == 401)
        after = status(new)

    assert (200, 200, 200) == (before, both, after)
    assert 0o640 == stat.S_IMODE(file.stat().st_mode)
    assert [file] == list(tmp_path.glob("keys.txt*"))
    assert new not in file.read_text("utf-8")


@pytest.mark.parametrize("name", [PAGE, "operations/kubernetes.md", "guides/troubleshooting.md"])
def test_no_page_asks_for_a_restart_after_a_key_was_changed(name):
    """The file is read again while the service runs."""
    text = " ".join(page(name).split())

    assert "read at the start only" not in text
    assert "keys](../api.md#keys) is read at the start" not in text
    assert "They are read at the start: after a change" not in text
